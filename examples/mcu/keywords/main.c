/* A device that hears words. The net is int8, constant, in flash; a small layer of floats over its scores learns a word
 * that was not in the training data, from a few recordings of each. */
#include <string.h>

#include "board.h"
#include "features.h"
#include "keywords.h"
#include "microphone.h"
#include "teacher.h"

enum { known = word_arch, test_each = 10, lessons = 40 };

static float sound[sound_length];

static int largest(const float *scores, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* Hears a word; its scores go where the second net reads them. */
static void listen(enum word word, chance *c)
{
    microphone_hear(sound, word, c);
    features_of(keywords_input(), sound);
    keywords_normalize(keywords_input());
    keywords_run();
    memcpy(teacher_input(), keywords_output(), known * sizeof(float));
}

/* Percent of all words that are recognised; of the new one alone in *new_word. */
static uint32_t examine(int taught, uint32_t *new_word)
{
    chance c = {31415};
    uint32_t right = 0;
    for (int word = 0; word < word_count; word++) {
        uint32_t before = right;
        for (int i = 0; i < test_each; i++) {
            listen((enum word)word, &c);
            int heard = largest(keywords_output(), known);
            if (taught) {
                teacher_run();
                heard = largest(teacher_output(), word_count);
            }
            right += heard == word;
        }
        *new_word = (right - before) * 100 / test_each;
    }
    return right * 100 / (word_count * test_each);
}

int main(void)
{
    chance c = {2718};
    uint32_t new_before, new_after;
    teacher_init();
    uint32_t before = examine(0, &new_before);
    for (int i = 0; i < lessons * word_count; i++) {
        const int32_t word = i % word_count;
        listen((enum word)word, &c);
        teacher_train_step(&word, 0.01f);
    }
    uint32_t after = examine(1, &new_after);

    listen(word_up, &c);
    stack_paint();
    count_begin("recognising a word");
    keywords_run();
    count_end();
    report("stack", stack_used());
    report("percent before", before);
    report("percent after", after);
    report("percent of the new word before", new_before);
    report("percent of the new word after", new_after);
    report("RAM", KEYWORDS_RAM_BYTES + TEACHER_RAM_BYTES);
    return before < 90 && after >= 93 && after > before ? 0 : 1;
}
