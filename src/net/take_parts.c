/* Batches in parts that nobody asked for by a budget: where a step takes less time in them, or training less memory at
 * next to no cost. choose_parts.c says how long steps take. */
#include "net/net.h"

#if !defined(MICA_SMALL)

/* The share of a step's time that parts must save, as estimated: less may be a mistake. And from so much more time than
 * the best on, fewer rows are not tried. */
#define LEAST_GAIN 0.04
#define HOPELESS   1.1
/* Smaller parts are taken for so much more time if they save this share of the block, which also leaves room for those
 * of other threads (lanes.c). */
#define MOST_LOSS  0.04
#define LEAST_LESS 0.1

/* The rows of the parts that are best: half the batch, a quarter, and so on. It is planned as a whole. */
static mica_status find_best(mica_net *net, mica_index fewest, mica_index *best)
{
    mica_index most = net->size[0].most;
    double fastest = mica_net_step_time(net), bar = fastest * (1.0 - LEAST_GAIN);
    double whole = (double)net->plan.total,
           bytes = whole; /* parts may take more: they keep all inputs to the end */
    for (mica_index rows = most; rows > 1;) {
        rows = (rows + 1) / 2;
        if (!mica_net_parts_fit(most, rows, fewest))
            continue;
        mica_status status = mica_net_plan_with_parts(net, rows);
        if (status == MICA_ERR_MEMORY)
            return status;
        net->status = MICA_OK; /* a size that some call refuses is none */
        double time = status == MICA_OK ? mica_net_step_time(net) : fastest * HOPELESS;
        double total = (double)net->plan.total;
        if (time >= fastest * HOPELESS)
            break;
        bool faster = time < bar && total <= whole,
             smaller = time < fastest * (1.0 + MOST_LOSS) && total < bytes * (1.0 - LEAST_LESS);
        if (!faster && !smaller)
            continue;
        *best = rows;
        bytes = total;
        if (faster)
            fastest = bar = time;
    }
    return MICA_OK;
}

/* Plans the parts that are best. They are those that one thread would take, since other parts round otherwise. The net
 * is planned as a whole. */
static mica_status plan_best(mica_net *net, mica_index fewest)
{
    mica_index best = net->size[0].most;
    int threads = net->ctx->threads;
    if (net->planes)
        return MICA_OK; /* whoever reads the program wants all of it */
    net->ctx->threads = 1;
    mica_status status = threads > 1 ? mica_net_plan_with_parts(net, best) : MICA_OK;
    if (status == MICA_OK)
        status = find_best(net, fewest, &best);
    net->ctx->threads = threads;
    MICA_TRY(status);
    return mica_net_plan_with_parts(net, best);
}

/* The parts that a net which is only run is asked for, or else those that make it faster. It is planned as a whole. */
mica_status mica_net_take_parts(mica_net *net, mica_index rows)
{
    mica_index most = net->size[0].most;
    if (rows == MICA_WHOLE_BATCH || rows >= most || most < 2)
        return MICA_OK;
    bool can = mica_net_can_infer_parts(net);
    mica_index fewest = can ? mica_net_fewest_rows(net) : most;
    if (rows == 0)
        return can ? plan_best(net, fewest) : MICA_OK;
    if (!can || !mica_net_parts_fit(most, rows, fewest))
        return mica_fail(net->ctx, MICA_ERR_STATE,
                         "net_compile: a batch of %td cannot be run in parts of %td: %s", most, rows,
                         can ? "some would be too small" : "its samples depend on one another");
    return mica_net_plan_with_parts(net, rows);
}

/* The share of a step's time that parts may add in training, as estimated, and how many percent of the block one
 * percent of it must save; and the least share of the block. */
#define MOST_COST   0.04
#define WORTH       2.0
#define LEAST_SAVED 0.05

/* The rows of the smallest parts that save memory and cost next to no time. The net is planned as a whole. */
static mica_status find_cheapest(mica_net *net, mica_index fewest, mica_index *best)
{
    mica_index most = net->size[0].most;
    double time = mica_net_training_time(net), total = (double)net->plan.total;
    for (mica_index rows = most; rows > 1;) {
        rows = (rows + 1) / 2;
        if (!mica_net_parts_fit(most, rows, fewest))
            return MICA_OK;
        mica_status status = mica_net_plan_with_parts(net, rows);
        if (status == MICA_ERR_MEMORY)
            return status;
        net->status = MICA_OK; /* a size that some call refuses is none */
        double cost = mica_net_training_time(net) / time - 1.0, saved = 1.0 - (double)net->plan.total / total;
        if (status != MICA_OK || cost > MOST_COST || saved < WORTH * cost || saved < LEAST_SAVED)
            return MICA_OK;
        *best = rows;
    }
    return MICA_OK;
}

/* Plans a training batch in parts, if they are cheap: those that one thread with the optimizer's whole state would
 * take, since other parts round otherwise. The net is planned as a whole. */
mica_status mica_net_take_cheap_parts(mica_net *net)
{
    mica_index best = net->size[0].most;
    int threads = net->ctx->threads, ranks = net->ranks;
    if (best < 2 || !mica_net_can_train_parts(net))
        return MICA_OK;
    mica_index fewest = mica_net_fewest_rows(net);
    net->ctx->threads = 1;
    net->ranks = 0;
    mica_status status = mica_net_plan_with_parts(net, best);
    if (status == MICA_OK)
        status = find_cheapest(net, fewest, &best);
    net->ctx->threads = threads;
    net->ranks = ranks;
    MICA_TRY(status);
    return mica_net_plan_with_parts(net, best);
}

#endif
