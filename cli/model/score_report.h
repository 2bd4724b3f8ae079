/* A score as parts of a report. */
#ifndef MICA_CLI_MODEL_SCORE_REPORT_H
#define MICA_CLI_MODEL_SCORE_REPORT_H

#include "cli/model/importance.h"
#include "cli/model/score_print.h"
#include "cli/model/writings.h"

enum { SCORE_TILES = 6 };

/* What those parts point to. */
typedef struct score_pages {
    report_mistake mistakes[SCORE_MOST_MISTAKES];
    const char *names[SCORE_MOST_CLASSES];
    char numbers[SCORE_MOST_CLASSES][12];
    report_target targets[SCORE_PAIR_TARGETS];
    report_setting tiles[SCORE_TILES];
    char tile_texts[SCORE_TILES][2][96];
} score_pages;

/* Fills in all that a report says of the score of `part`. What it points to belongs to `room`, the score and the net;
 * importance and writings may be empty. */
void score_report(report *r, score_pages *room, const score *s, scored_net net, const char *part,
                  const importance *columns, const writings *texts);

#endif
