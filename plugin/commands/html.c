/* See html.h. */
#include "html.h"

#include <string.h>

#include "json.h"

void amp_html_text(FILE *stream, const char *text)
{
    static const char special[] = "<>&\"'";
    static const char *const entities[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };
    for (int bytes; *text; text += bytes ? bytes : 1) {
        const char *found = strchr(special, *text);
        bytes = amp_utf8_bytes(text);
        int is_control = ((unsigned char)*text < 0x20 && *text != '\n') || *text == 0x7f;
        if (!bytes || is_control) fputs("\xef\xbf\xbd", stream);
        else if (found) fputs(entities[found - special], stream);
        else fwrite(text, 1, (size_t)bytes, stream);
    }
}
