#include "resume.h"

#include <stdlib.h>

struct amp_resume {
    char *last_file; /* saved or loaded as a whole */
};

struct amp_resume *amp_resume_create(void) { return calloc(1, sizeof(struct amp_resume)); }

void amp_resume_free(struct amp_resume *resume)
{
    if (!resume) return;
    free(resume->last_file);
    free(resume);
}

const char *amp_host_last_checkpoint(struct darknet_amp *amp) { return amp->resume->last_file; }
