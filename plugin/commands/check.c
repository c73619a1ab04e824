/* `darknet amp check`: finds every mistake in a .cfg and a .data file, without making the network. */
#include <string.h>

#include "../host/program/cfg.h"
#include "arguments.h"
#include "command.h"
#include "data_scan.h"
#include "table.h"

typedef struct findings {
    const char *first;  /* the error of amp_config_read, already printed; "" if it succeeded */
    int repeated;       /* how many times cfg_check reported the same error */
} findings;

static void print_finding(void *context, int is_error, const char *line)
{
    findings *f = context;
    if (is_error && !strcmp(line, f->first)) f->repeated++;
    else printf("%s: %s\n", is_error ? "error" : "warning", line);
}

static void print_summary(const char *cfg, const cfg_summary *s)
{
    char name[300];
    cfg_printable(name, sizeof name, cfg);
    printf("%s: no mistakes found: %d layers, input %.0fx%.0fx%.0f, images a pass: %.0f, %.3g million "
           "weights\n", name, s->layers, s->w, s->h, s->c, s->batch, s->weights / 1e6);
}

/* Sets *is_odd: whether warnings were printed. A network whose last layer finds no boxes is a classifier. */
static amp_status check_data(amp_data_scan *scan, const cfg_summary *cfg, int *is_odd, amp_error *error)
{
    scan->classifier = cfg->classes == 0;
    scan->classes = (int)(scan->classifier ? cfg->truths : cfg->classes);
    scan->w = (int)cfg->w;
    scan->h = (int)cfg->h;
    scan->boxes = (int)cfg->boxes;
    amp_status status = amp_scan_data(scan, error);
    fflush(stdout);
    *is_odd = amp_scan_print(scan);
    return status;
}

static void print_keys(void)
{
    amp_config_row row;
    printf("The keys of [amp], or of [net], with their defaults:\n");
    for (int k = 0; amp_config_key(k, &row); k++) {
        printf("  %-15s  ", row.name);
        amp_print_wrapped(stdout, 19, "[%s] %s; allowed: %s", row.initial, row.help, row.allowed);
    }
}

amp_status amp_command_check(int argc, char **argv, amp_error *error)
{
    const char *cfg = NULL, *data = NULL;
    const amp_argument arguments[] = {
        { .name = "CFG", .text = &cfg, .about = "the network's .cfg" },
        { .name = "DATA", .text = &data, .optional = 1,
          .about = "also checks this .data file and its labels" },
        { 0 } };
    amp_status usage = amp_arguments_read("amp check", argc - 3, argv + 3, arguments, error);
    if (usage == AMP_HELP_PRINTED) print_keys();
    AMP_TRY(usage);

    findings found = { .first = "" };
    const cfg_listener printer = { print_finding, &found };
    cfg_summary summary;
    amp_config *config;
    cfg_document *document;
    char given[sizeof config->given] = "";
    amp_error key_error;
    AMP_TRY(amp_cfg_document(cfg, &document, error));
    amp_status keys = amp_config_read(document, amp_this_program()->dtype, AMP_FP32, &config, &key_error);
    if (keys == AMP_OK) {
        snprintf(given, sizeof given, "%s", config->given);
        amp_config_free(config);
    } else found.first = key_error.message;
    if (*found.first) printf("error: %s\n", found.first);
    cfg_use use = data ? CFG_TRAINS_DATA : CFG_TRAINS_BOXES;
    cfg_check(document, &amp_cfg_fork, use, &printer, &summary);
    amp_document_give_back(document);
    int errors = summary.errors + (keys != AMP_OK) - found.repeated;
    if (errors) return amp_fail(error, AMP_BAD_CONFIG, "%.300s: mistakes: %d", cfg, errors);
    amp_data_scan scan = { .data_file = data, .cfg = cfg, .listener = &printer };
    int is_odd = 0;
    if (data) AMP_TRY(check_data(&scan, &summary, &is_odd, error));
    print_summary(cfg, &summary);
    if (*given) printf("[amp]: %s; other keys have their defaults (amp check -h lists them)\n", given);
    if (data)
        printf("%.300s: %s: %ld images to train on, %ld to validate on%s\n", data,
               is_odd ? "can be used for training, but see above" : "no mistakes found",
               scan.train.images, scan.valid.images,
               scan.valid.images ? "" : ", but -map and `amp valid` need some (`valid = FILE`)");
    return AMP_OK;
}
