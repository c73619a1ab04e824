/* Replays what torch.amp.GradScaler did in random trainings: every scale and every growth tracker must be
 * equal, bit for bit. oracles/scaler_traces.py, which documents the format, has written
 * golden/scaler_traces.txt.
 *
 * torch has neither floor nor cap, so ours are set out of reach: max_scale is infinite, min_scale fp32's
 * smallest normal number (like Darknet, the test runs with flush-to-zero). A trace ends where torch's scale
 * falls below that, and there ours must return AMP_DIVERGED. A second scaler with the default floor and cap
 * is compared too: it must follow torch's until torch's scale leaves its range, and then return AMP_DIVERGED,
 * or stay at the cap. */
#include "testing.h"

#include <float.h>
#include <math.h>

#include "amp/scaler.h"
#include "tensor/half.h"

enum { MOST_STEPS = 256, LONGEST_LINE = 8192, FEWEST_TRAININGS = 80 };

/* -- Reading -- */

typedef struct trace {
    int line;
    amp_scaler params;
    int steps;
    unsigned char overflows[MOST_STEPS];
    int ends;                   /* in the last step torch's scale falls below fp32's normal numbers */
    uint32_t crc;
    const char *written_out;    /* the scale's bits at each change, or NULL */
} trace;

static const char *word(char **rest, int line)
{
    char *found = strtok_r(NULL, " \n", rest);
    if (!found) fail_msg("line %d is cut off", line);
    return found;
}

static double number(const char *text, int line)
{
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end) fail_msg("line %d: %s is no number", line, text);
    return parsed;
}

static void read_overflows(trace *t, const char *digits)
{
    if (t->steps < 1 || t->steps > MOST_STEPS || strlen(digits) != (size_t)(t->steps + 3) / 4)
        fail_msg("line %d: %d steps do not go with %s", t->line, t->steps, digits);
    for (int i = 0; i < t->steps; i++) {
        char digit[2] = { digits[i / 4], '\0' };
        t->overflows[i] = strtoul(digit, NULL, 16) >> (3 - i % 4) & 1;
    }
}

static void read_trace(trace *t, char *line, int line_number)
{
    char *rest = NULL;
    *t = (trace){ .line = line_number, .params = amp_scaler_defaults() };
    t->params.scale = number(strtok_r(line, " \n", &rest), line_number);
    t->params.growth_factor = number(word(&rest, line_number), line_number);
    t->params.backoff_factor = number(word(&rest, line_number), line_number);
    t->params.growth_interval = (int)number(word(&rest, line_number), line_number);
    t->steps = (int)number(word(&rest, line_number), line_number);
    read_overflows(t, word(&rest, line_number));
    const char *next = word(&rest, line_number);
    t->ends = strcmp(next, "end") == 0;
    if (t->ends) next = word(&rest, line_number);
    assert_int_equal(strlen(next), 8);
    t->crc = (uint32_t)strtoul(next, NULL, 16);
    char *colon = strtok_r(NULL, " \n", &rest);
    if (colon) t->written_out = rest;
}

/* -- Replaying -- */

/* CRC-32 as zlib computes it, continued over one little-endian number. */
static uint32_t crc_on(uint32_t crc, uint32_t value)
{
    crc = ~crc;
    for (int i = 0; i < 32; i++, value >>= 1) {
        uint32_t carry = (crc ^ value) & 1u;
        crc = crc >> 1 ^ (carry ? 0xedb88320u : 0);
    }
    return ~crc;
}

static amp_scaler scaler_without_limits(const trace *t)
{
    amp_scaler scaler;
    amp_error error = { 0 };
    amp_scaler params = t->params;
    params.min_scale = FLT_MIN;
    params.max_scale = INFINITY;
    if (amp_scaler_init(&scaler, &params, &error) != AMP_OK) fail_msg("line %d: %s", t->line, error.message);
    return scaler;
}

static void same_change(const trace *t, const char **written_out, int step, float scale)
{
    char *end;
    uint32_t bits = (uint32_t)strtoul(*written_out, &end, 16);
    if (end == *written_out || bits != amp_float_bits(scale))
        fail_msg("line %d, step %d: scale %a instead of %a", t->line, step, scale, amp_bits_float(bits));
    *written_out = end;
}

/* The scales of the trace, one per step, each compared with torch's. */
static void replay(const trace *t, float scales[MOST_STEPS])
{
    amp_scaler scaler = scaler_without_limits(t);
    const char *written_out = t->written_out;
    uint32_t crc = 0;
    for (int step = 0; step < t->steps; step++) {
        float before = scaler.scale;
        amp_status status = amp_scaler_update(&scaler, t->overflows[step]);
        scales[step] = scaler.scale;
        if (t->ends && step == t->steps - 1) {
            if (status != AMP_DIVERGED || scaler.scale != before)
                fail_msg("line %d: torch's scale falls below %g, ours goes on at %g", t->line, FLT_MIN,
                         scaler.scale);
            scales[step] = 0;
            break;
        }
        if (status != AMP_OK)
            fail_msg("line %d, step %d: status %d where torch goes on", t->line, step, status);
        crc = crc_on(crc_on(crc, amp_float_bits(scaler.scale)), (uint32_t)scaler.growth_tracker);
        if (written_out && (step == 0 || scaler.scale != before))
            same_change(t, &written_out, step, scaler.scale);
    }
    if (written_out) assert_int_equal(strspn(written_out, " \n"), strlen(written_out));
    if (crc != t->crc)
        fail_msg("line %d: the trace's checksum is %08x instead of %08x", t->line, crc, t->crc);
}

typedef struct tally { long same, floors, caps; } tally;

/* Compares a scaler with the default floor and cap with torch's scales, until these leave its range. */
static void replay_within_the_default_limits(const trace *t, const float scales[MOST_STEPS], tally *seen)
{
    amp_scaler scaler;
    if (amp_scaler_init(&scaler, &t->params, NULL) != AMP_OK) { /* torch starts out of range */
        assert_true((float)t->params.scale < 0x1p-14f || (float)t->params.scale > 0x1p126f);
        return;
    }
    for (int step = 0; step < t->steps; step++) {
        amp_scaler before = scaler;
        amp_status status = amp_scaler_update(&scaler, t->overflows[step]);
        if (status == AMP_OK && scaler.scale == scales[step]) {
            seen->same++;
            continue;
        }
        if (status == AMP_DIVERGED) {
            assert_true(t->overflows[step] && scales[step] < 0x1p-14f);
            assert_true(scaler.scale == before.scale);
            seen->floors++;
        } else {
            assert_true(!t->overflows[step] && scaler.growth_tracker == 0);
            assert_true((double)before.scale * t->params.growth_factor > 0x1p126);
            assert_true(scaler.scale == 0x1p126f);
            seen->caps++;
        }
        return;
    }
}

/* golden/scaler_traces.txt, or that of the folder in AMP_GOLDEN. __FILE__ may be relative. */
static FILE *open_traces(void)
{
    char path[4096];
    const char *folder = getenv("AMP_GOLDEN");
    if (folder) snprintf(path, sizeof path, "%s/scaler_traces.txt", folder);
    else snprintf(path, sizeof path, "%.*sgolden/scaler_traces.txt",
                  (int)(sizeof __FILE__ - sizeof "amp/test_scaler_traces.c"), __FILE__);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot read %s", path);
    return file;
}

TEST(scales_and_trackers_are_those_of_torch)
{
    static char line[LONGEST_LINE];
    FILE *file = open_traces();
    long trainings = 0, steps = 0, ends = 0;
    tally seen = { 0 };
    for (int line_number = 1; fgets(line, sizeof line, file); line_number++) {
        trace t;
        float scales[MOST_STEPS];
        if (*line == '#') continue;
        read_trace(&t, line, line_number);
        replay(&t, scales);
        replay_within_the_default_limits(&t, scales, &seen);
        trainings++;
        steps += t.steps;
        ends += t.ends;
    }
    fclose(file);
    print_message("%ld trainings, %ld steps, %ld ends; default limits: %ld steps the same, %ld floors, %ld "
                  "caps\n", trainings, steps, ends, seen.same, seen.floors, seen.caps);
    assert_true(trainings >= FEWEST_TRAININGS);
    assert_true(ends > 0 && seen.same > steps / 2 && seen.floors > 0 && seen.caps > 0);
}

int main(void) { return run_listed_tests("scaler traces", NULL, NULL); }
