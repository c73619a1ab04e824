/* Preloaded into a Darknet with OpenCV: each text that is put on an image is a line of the file that the
 * variable CHART_WORDS names. Nothing is drawn. The function is OpenCV's cv::putText, of which only the
 * second argument is looked at: a std::string, which begins with the pointer to its characters. */
#include <stdio.h>
#include <stdlib.h>

struct string {
    const char *characters;
};

void put_text(const void *image, const struct string *text) __asm__(
    "_ZN2cv7putTextERKNS_17_InputOutputArrayERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEENS_6Point_"
    "IiEEidNS_7Scalar_IdEEiib");

void put_text(const void *image, const struct string *text)
{
    const char *name = getenv("CHART_WORDS");
    FILE *file = name ? fopen(name, "a") : NULL;
    (void)image;
    if (!file) abort();
    fprintf(file, "%s\n", text->characters);
    fclose(file);
}
