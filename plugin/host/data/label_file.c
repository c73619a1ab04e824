/* See label_file.h. Parses numbers as fscanf does, so that valid files give the same boxes as in Darknet. */
#include "label_file.h"

#include <errno.h>
#include <string.h>

#include "../../tensor/half.h"
#include "../fork.h"
#include "data_files.h"

enum { LINE_ROOM = 1024 }; /* the size of the buffer for a line; the five numbers of a label need less */

static const char BLANKS[] = " \t\r\n\f\v";
/* Coordinates beyond this must be in pixels: even for boxes that overlap an edge, relative coordinates stay
 * far below it. */
static const float BEYOND = 2;

static const char *skip_blanks(const char *text) { return text + strspn(text, BLANKS); }

/* Reads the number at the start of *text into *whole, or into *value if whole is NULL. Moves *text past it.
 * Returns 0 if there is no number, or if no blank follows the number; a number read into *value may also end
 * the text. */
static int take_number(const char **text, float *value, long *whole)
{
    char *end;
    if (whole) *whole = strtol(*text, &end, 10);
    else *value = strtof(*text, &end);
    if (end == *text || (*end ? !strchr(BLANKS, *end) : whole != NULL)) return 0;
    *text = end;
    return 1;
}

static int is_outside(const amp_label *l)
{
    if (l->x == 0 && l->y == 0) return 1; /* not a box: Darknet's correct_boxes moves it to 999999 */
    if (l->w <= 0 || l->h <= 0) return 1;
    return l->x - l->w / 2 >= 1 || l->x + l->w / 2 <= 0 || l->y - l->h / 2 >= 1 || l->y + l->h / 2 <= 0;
}

amp_label_kind amp_label_parse(const char *line, int classes, amp_label *label)
{
    const char *rest = skip_blanks(line);
    float *const numbers[] = { &label->x, &label->y, &label->w, &label->h };
    long class_id;
    if (!*rest) return AMP_LABEL_BLANK;
    if (!take_number(&rest, NULL, &class_id)) return AMP_LABEL_NO_LABEL;
    for (int i = 0; i < 4; i++) if (!take_number(&rest, numbers[i], NULL)) return AMP_LABEL_NO_LABEL;
    if (*skip_blanks(rest)) return AMP_LABEL_NO_LABEL;
    if (class_id < 0 || class_id >= classes) {
        label->class_id = class_id < 0 ? -1 : classes;
        return AMP_LABEL_BAD_CLASS;
    }
    label->class_id = (int)class_id;
    for (int i = 0; i < 4; i++) if (!amp_is_finite(*numbers[i])) return AMP_LABEL_NOT_FINITE;
    for (int i = 0; i < 4; i++) if (*numbers[i] > BEYOND || *numbers[i] < -BEYOND) return AMP_LABEL_IN_PIXELS;
    return is_outside(label) ? AMP_LABEL_OUTSIDE : AMP_LABEL_BOX;
}

int amp_label_path(const char *image, char path[AMP_LABEL_PATH])
{
    if (strlen(image) > AMP_IMAGE_PATH_MOST) return 0;
    amp_fork_label_path(image, path);
    return 1;
}

static int is_text(const char *file)
{
    size_t length = strlen(file);
    return length > 4 && !strcmp(file + length - 4, ".txt");
}

/* Writes text to shown, with \xNN for each byte that is not printable ASCII. Returns 1 if a byte that was
 * written as \xNN is not ASCII white space. */
static int show(char *shown, size_t room, const char *text, size_t length)
{
    size_t at = 0;
    int odd = 0;
    for (size_t i = 0; i < length && at + 8 < room; i++) {
        int plain = text[i] >= ' ' && text[i] <= '~';
        odd |= !plain && !(text[i] && strchr(BLANKS, text[i]));
        at += (size_t)snprintf(shown + at, room - at, plain ? "%c" : "\\x%02x", (unsigned char)text[i]);
        if (i + 1 < length && at + 8 >= room) strcpy(shown + at, "...");
    }
    if (!length) *shown = 0;
    return odd;
}

static amp_status refuse(const char *file, unsigned long line, const char *text, size_t length,
                         amp_label_kind kind, int classes, amp_error *error)
{
    static const char *const wrong[] = {
        [AMP_LABEL_NOT_FINITE] = "holds inf or NaN",
        [AMP_LABEL_IN_PIXELS] = "is not relative to the image: x, y, width and height go from 0 to 1",
        [AMP_LABEL_NO_LABEL] = "is not `class x y width height`" };
    char shown[64], what[160];
    if (kind == AMP_LABEL_NO_LABEL && !is_text(file)) /* for example the image itself */
        return amp_fail(error, AMP_BAD_CONFIG, "%.700s: Darknet would read this image as its own label file, "
                        "because it replaces only these image endings by .txt: %s; rename the image", file,
                        amp_fork_label_images);
    int odd = show(shown, sizeof shown, text, length);
    if (kind == AMP_LABEL_NO_LABEL && odd)
        snprintf(what, sizeof what, "%s, with bytes that are not plain text", wrong[kind]);
    else if (kind != AMP_LABEL_BAD_CLASS) snprintf(what, sizeof what, "%s", wrong[kind]);
    else
        snprintf(what, sizeof what, "has a class that the network does not have (classes: 0 to %d)",
                 classes - 1);
    return amp_fail(error, AMP_BAD_CONFIG, "%.700s:%lu: label '%s' %s; fix the file", file, line, shown,
                    what);
}

static amp_status read_line(const char *file, unsigned long line, char *text, int classes,
                            amp_label_visit visit, void *context, amp_error *error)
{
    amp_label label;
    amp_label_kind kind = amp_label_parse(text, classes, &label);
    if (kind == AMP_LABEL_BLANK) return AMP_OK;
    if (kind != AMP_LABEL_BOX && kind != AMP_LABEL_OUTSIDE)
        return refuse(file, line, text, strlen(text), kind, classes, error);
    return visit ? visit(context, file, line, &label, kind == AMP_LABEL_OUTSIDE, error) : AMP_OK;
}

static amp_status fail_missing(const char *file, amp_error *error)
{
    int named_so = is_text(file);
    if (!named_so && strstr(file, ".txt"))
        return amp_fail(error, AMP_BAD_CONFIG, "%.500s: cannot read this label file: %s; Darknet replaces "
                        "only the first .jpg or .png in an image's path by .txt: rename the image or its "
                        "folder so that its path has only one", file, strerror(ENOENT));
    return amp_fail(error, AMP_BAD_CONFIG, "%.500s: cannot read this label file: %s; %s%s; %s", file,
                    strerror(ENOENT),
                    named_so ? "this Darknet looks for "
                             : "Darknet replaces only these image endings by .txt: ",
                    named_so ? amp_fork_label_place : amp_fork_label_images,
                    named_so ? "copy your label files there (an image without objects needs an empty label "
                               "file)" : "rename the image");
}

/* Reads a line. Returns 1 if it was read; -1 if no line is left; 0 if the line is too long or not text (then
 * it was not read to its end). */
static int get_line(FILE *stream, char text[LINE_ROOM], size_t *length)
{
    int c = getc_unlocked(stream);
    *length = 0;
    if (c == EOF) return -1;
    for (; c != EOF && c != '\n' && *length < LINE_ROOM - 1; c = getc_unlocked(stream)) {
        text[(*length)++] = (char)c;
        if (c == 0) return 0;
    }
    text[*length] = 0;
    return c == EOF || c == '\n';
}

amp_status amp_labels_read(const char *file, int classes, amp_label_visit visit, void *context,
                           amp_error *error)
{
    char text[LINE_ROOM];
    unsigned long line = 0;
    size_t length;
    int whole;
    amp_status status = AMP_OK;
    FILE *stream = amp_open_to_read(file, "this label file", error);
    if (!stream) return errno == ENOENT ? fail_missing(file, error) : AMP_BAD_CONFIG;
    errno = 0;
    while (status == AMP_OK && (whole = get_line(stream, text, &length)) >= 0) {
        line++;
        status = whole ? read_line(file, line, text, classes, visit, context, error)
                       : refuse(file, line, text, length, AMP_LABEL_NO_LABEL, classes, error);
    }
    if (status == AMP_OK && ferror(stream))
        status = amp_fail(error, AMP_BAD_CONFIG, "%.600s: cannot read this label file: %s", file,
                          strerror(errno));
    fclose(stream);
    return status;
}
