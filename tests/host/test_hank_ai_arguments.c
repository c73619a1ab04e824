/* hank-ai's command line, whose words stand in any order: what the plugin makes of it (host/hank_ai). */
#include "testing.h"

/* Its options; the table of the Darknet that this program is linked with has others. */
#define amp_fork_options hank_ai_options
#include "host/hank_ai/arguments.c"

const amp_fork_option hank_ai_options[] = { { "-dont_show", 0, 1, 1 }, { "-clear", 0, 1, 1 },
                                            { "-gpus", 1, 1, 1 }, { "-log", 1, 1, 1 },
                                            { "-save_weights", 1, 1, 0 }, { 0 } };
#undef amp_fork_options

static int knows_ours;
void amp_note_command(int is_ours) { knows_ours = is_ours; }

/* Blanks part the words. */
static void becomes(const char *given, const char *expected)
{
    enum { MOST = 32 };
    char text[256], joined[256] = "", *argv[MOST];
    int argc = 0;
    snprintf(text, sizeof text, "%s", given);
    for (char *word = strtok(text, " "); word && argc < MOST; word = strtok(NULL, " ")) argv[argc++] = word;
    amp_program_to_set()->weights[0] = amp_program_to_set()->weights[1] = NULL;
    darknet_amp_order(argc, argv);
    for (int i = 0; i < argc; i++) {
        if (i) strcat(joined, " ");
        strcat(joined, argv[i]);
    }
    assert_string_equal(joined, expected);
}

TEST(words_and_options_may_stand_in_any_order)
{
    becomes("darknet detector train my.data my.cfg first.weights -amp bf16 -dont_show", /* the usual one */
            "darknet detector train my.data my.cfg first.weights -amp bf16 -dont_show");
    becomes("darknet -map detector my.cfg -seed 4 my.backup train my.data",
            "darknet detector train my.data my.cfg my.backup -map -seed 4");
    becomes("darknet detector map my.cfg my.data my.weights",
            "darknet detector map my.data my.cfg my.weights");
    becomes("darknet detector -map 3 -dont_show train my.data my.cfg 7", /* the number behind -map stays */
            "darknet detector train my.data my.cfg 7 -map 3 -dont_show");
    becomes("darknet detector -map train my.data my.cfg", "darknet detector train my.data my.cfg -map");
    becomes("darknet detector dontshow train --CLEAR my.data my.cfg -saveweights 500 -Map", /* spelling */
            "darknet detector train my.data my.cfg -dont_show -clear -save_weights 500 -map");
    becomes("darknet detector -log train.cfg -gpus 0,1 train my.data my.cfg", /* the value is no word */
            "darknet detector train my.data my.cfg -log train.cfg -gpus 0,1");
}

TEST(a_training_takes_one_file_of_weights_whatever_its_ending)
{
    becomes("darknet detector train my.names first.conv.29 my.data my.cfg",
            "darknet detector train my.data my.cfg my.names first.conv.29");
    assert_string_equal(amp_this_program()->weights[0], "first.conv.29");
    assert_null(amp_this_program()->weights[1]);
    assert_false(darknet_amp_names_weights("first.conv.29")); /* without AMP Darknet decides */
    assert_true(darknet_amp_names_weights("my.backup"));
    becomes("darknet detector train my.data my.cfg first.conv.29 my.weights",
            "darknet detector train my.data my.cfg my.weights first.conv.29");
    assert_string_equal(amp_this_program()->weights[0], "first.conv.29");
    assert_string_equal(amp_this_program()->weights[1], "my.weights");
}

/* These commands name the file that they write: it need not exist. */
TEST(only_weights_that_a_command_reads_have_to_exist)
{
    static const char *const writers[] = { "average", "denormalize", "normalize", "oneoff", "partial",
                                           "rescale", "reset", "rgbgr" };
    char command[128];
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        snprintf(command, sizeof command, "darknet %s my.cfg one.weights two.weights", writers[i]);
        amp_program_to_set()->weights_word = NULL;
        becomes(command, command);
        assert_null(amp_this_program()->weights_word);
    }
    becomes("darknet statistics my.cfg my.weights", "darknet statistics my.cfg my.weights");
    assert_string_equal(amp_this_program()->weights_word, "my.weights");
    becomes("darknet my.backup detector map my.cfg my.data", "darknet detector map my.data my.cfg my.backup");
    assert_string_equal(amp_this_program()->weights_word, "my.backup");
}

TEST(other_commands_are_left_alone)
{
    becomes("darknet cfglayers my.cfg -trace", "darknet cfglayers my.cfg -trace");
    knows_ours = 0;
    becomes("darknet amp compare my.cfg my.data -seed 3", "darknet amp compare my.cfg my.data -seed 3");
    assert_true(knows_ours);
}

int main(void) { return run_listed_tests("hank-ai's arguments", NULL, NULL); }
