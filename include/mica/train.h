/* Training: one step, the schedules of its learning rate, a check of gradients. The loop over data is in mica/fit.h. */
#ifndef MICA_TRAIN_H
#define MICA_TRAIN_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Steps: for a net compiled with .train and an optimizer. Nothing allocates. ---- */

/* As a learning rate: the optimizer's own. Any other value is used as is: with 0, as at the end of a schedule, an
 * update changes the optimizer's state but no parameter. */
#define MICA_OPTIMIZER_LR (-1.0f)

/* Forward, backward, update, with this learning rate: finite, and not below 0 unless it is MICA_OPTIMIZER_LR.
 * mica_net_loss returns the loss. */
MICA_API mica_status mica_train_step(mica_net *net, float lr);

/* The same in parts, for accumulation: `parts` calls of mica_train_accumulate with a part of the batch each, whose
 * gradients are averaged, then one mica_train_update. */
MICA_API mica_status mica_train_accumulate(mica_net *net, int part, int parts);
MICA_API mica_status mica_train_update(mica_net *net, float lr);

/* The number of updates so far, which also selects the random streams of a step. Part of a checkpoint. */
MICA_API uint64_t mica_train_steps(const mica_net *net);
MICA_API mica_status mica_train_set_steps(mica_net *net, uint64_t steps);

/* The norm of all gradients before clipping, of the last update with clip_norm. */
MICA_API float mica_train_gradient_norm(const mica_net *net);

/* The optimizer's state as flat tensors, aligned with the learned parameters of mica_net_flat (or with a rank's part of
 * them: mica/ranks.h). Returns how many: 0 to 2. */
MICA_API int mica_train_state(mica_net *net, mica_tensor out[2]);

/* ---- Gradients against differences ---- */

/* For a layer or operation of your own: changes elements of each parameter up and down, and compares how the loss
 * follows with what the backward says. To check the gradient of a layer's input too, make the input learned:
 * mica_net_learned(net, "x", ...). */
typedef struct mica_gradient_check_opts {
    double step;      /* of the differences; 0: 1e-2 */
    double tolerance; /* relative to the parameter's largest gradient; 0: 5e-3 */
    double least;     /* that gradient is taken to be at least this; 0: 1e-3 */
    size_t count; /* elements of each parameter, drawn with the seed; 0: 64. All of those that have no more */
    uint64_t seed;
    uint64_t step_number; /* whose random numbers dropout draws */
    /* The loss of the forward that has just run, where it can be told in double precision; NULL: mica_net_loss. */
    double (*loss)(void *user, mica_net *net);
    void *user;
} mica_gradient_check_opts;

/* The element that is farthest off. */
typedef struct mica_gradient_check {
    bool right;        /* all are within the tolerance */
    const char *name;  /* of its parameter; NULL: nothing was checked */
    size_t element;    /* its position there, in row-major order */
    double gradient;   /* by the backward */
    double difference; /* by differences of the loss */
    double error;      /* between the two, relative to the parameter's largest gradient */
    size_t checked;    /* elements */
    size_t corners;    /* of these, right with a smaller step only: a relu was near its corner */
} mica_gradient_check;

/* For a bound net compiled with .train, whose inputs have been written. A wrong gradient is MICA_OK and out->right
 * false. The parameters and inputs are as before afterwards; states are reset; running statistics have moved on. Takes
 * memory for a copy of the inputs from the context's allocator, and gives it back. */
MICA_API mica_status mica_check_gradients(mica_net *net, mica_gradient_check *out,
                                          const mica_gradient_check_opts *opts);

/* ---- Learning-rate schedules ---- */

typedef enum mica_schedule_kind {
    MICA_SCHEDULE_CONSTANT,
    MICA_SCHEDULE_STEP,        /* times gamma every `period` steps */
    MICA_SCHEDULE_EXPONENTIAL, /* times gamma every step */
    MICA_SCHEDULE_COSINE,      /* from lr to min_lr over `total` steps, then min_lr */
    MICA_SCHEDULE_ONE_CYCLE,   /* up from lr / 25 to lr over the first 30 %, then down to lr / 250000 */
} mica_schedule_kind;

typedef struct mica_schedule {
    mica_schedule_kind kind;
    float lr;        /* the peak */
    float min_lr;    /* cosine */
    float gamma;     /* step: 0 means 0.1; exponential: 0 means 0.95 */
    uint64_t warmup; /* steps of linear rise to lr before the schedule starts (one-cycle has its own) */
    uint64_t period; /* step */
    uint64_t total;  /* cosine and one-cycle: all steps, including warm-up */
} mica_schedule;

/* The learning rate of step number `step`, the first being 0. */
MICA_API float mica_schedule_lr(const mica_schedule *schedule, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
