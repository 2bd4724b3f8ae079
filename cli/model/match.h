/* Whether nets and data fit together: said before the first batch is made, with both shapes. */
#ifndef MICA_CLI_MODEL_MATCH_H
#define MICA_CLI_MODEL_MATCH_H

#include <mica/netfile.h>

#include "cli/model/data.h"

/* Where data go into a net and come out of it: shapes, for a whole batch, without memory. */
typedef struct net_ends {
    mica_tensor input, output;
    mica_tensor target; /* rank 0, without has_target: inference */
    bool has_target;
} net_ends;

/* Finds them, and makes sure of what everything here relies on: the batch is the first axis of all of them, the
 * output is f32, no other input is read. `what` names the net in messages. The net need not be compiled. */
int net_ends_find(net_ends *out, const verb *v, mica_net *net, const mica_netfile_info *info,
                  const char *what);

/* Whether samples are what an input takes, both with axis 0 in front: as many values, in the same order. `what` names
 * the net in messages, `from` the samples. */
int sample_match(const verb *v, const mica_tensor *wanted, const char *what, const mica_tensor *given,
                 const char *from);

/* Whether the net can be trained on the data, or scored on them. `spec` is what --data was. */
int data_match(const data *d, const char *spec, const verb *v, const net_ends *ends,
               const mica_netfile_info *info, const char *what);

/* The output of a step with so many samples: a row of outputs for each. Fails where it is not what was found before:
 * an axis that follows the batch or the length in another way than the first does. */
mica_status net_output(mica_tensor *out, mica_net *net, const mica_netfile_info *info, mica_index samples);

#endif
