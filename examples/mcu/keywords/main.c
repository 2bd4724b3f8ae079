/* A device that hears words. Its net is int8, constant, in flash, but for the last layer: that one is of floats, in
 * RAM, and learns a word that was not in the training data, from recordings of each. */
#include "board.h"
#include "features.h"
#include "keywords.h"
#include "microphone.h"

enum { test_each = 10, lessons = 40 };

static float sound[sound_length], features[frame_count * band_count];

/* Hears a word: what the net takes of it is in its input then. */
static void listen(enum word word, chance *c)
{
    microphone_hear(sound, word, c);
    features_of(features, sound);
    keywords_normalize(features);
    keywords_quantize_input(features);
}

static int heard(void)
{
    const float *scores = keywords_output();
    int best = 0;
    for (int i = 1; i < word_count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* Percent of all words that are recognised; of the last one alone in *last. */
static uint32_t examine(uint32_t *last)
{
    chance c = {31415};
    uint32_t right = 0;
    for (int word = 0; word < word_count; word++) {
        uint32_t before = right;
        for (int i = 0; i < test_each; i++) {
            listen((enum word)word, &c);
            keywords_run();
            right += heard() == word;
        }
        *last = (right - before) * 100 / test_each;
    }
    return right * 100 / (word_count * test_each);
}

int main(void)
{
    chance c = {2718};
    uint32_t new_before, new_after;
    keywords_init();
    uint32_t before = examine(&new_before);
    for (int i = 0; i < lessons * word_count; i++) {
        const int32_t word = i % word_count;
        listen((enum word)word, &c);
        keywords_train_step(&word, 0.005f);
    }
    uint32_t after = examine(&new_after);

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
    report("RAM", KEYWORDS_RAM_BYTES);
    return new_before == 0 && new_after >= 50 && after > before ? 0 : 1;
}
