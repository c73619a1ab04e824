/* A set of names, so that each is told once. Starts zeroed. */
#ifndef AMP_HOST_NAMES_SEEN_H
#define AMP_HOST_NAMES_SEEN_H

typedef struct amp_names_seen { void *root; long count; } amp_names_seen;

/* 1 if the name is new; 0 also where there is no memory for it. */
int amp_names_add(amp_names_seen *set, const char *name);
void amp_names_free(amp_names_seen *set);

#endif
