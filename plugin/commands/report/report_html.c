/* Writes the report as one HTML page that needs no other file. The page is report.html, which is embedded in
 * the program. The comparison's table and JSON are filled in. */
#include "../compare/comparison.h"

#include <string.h>

/* amp_report_page: the contents of the file AMP_REPORT_PAGE, NUL-terminated. */
__asm__(".pushsection .rodata\n.global amp_report_page\n.hidden amp_report_page\n"
        "amp_report_page: .incbin \"" AMP_REPORT_PAGE "\"\n.byte 0\n.popsection\n");
extern const char amp_report_page[] __attribute__((visibility("hidden")));

/* Writes the page up to a mark. Returns the text after it. */
static const char *write_until(FILE *stream, const char *page, const char *mark)
{
    const char *at = strstr(page, mark);
    fwrite(page, 1, (size_t)(at - page), stream);
    return at + strlen(mark);
}

void amp_report_html(FILE *stream, const void *comparison)
{
    const char *rest = write_until(stream, amp_report_page, "@TABLE@");
    amp_html_written(stream, amp_report_table, comparison);
    rest = write_until(stream, rest, "@DATA@");
    amp_report_json(stream, comparison);
    fputs(rest, stream);
}
