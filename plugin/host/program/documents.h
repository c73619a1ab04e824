/* The .cfg and .data files that this program reads. A program that trains reads its own once: the first of
 * each kind stays here, for the checks, the settings, Darknet's parser and the loaders. A program that uses
 * libdarknet may load another network from a file of the same name, so for it nothing stays. */
#pragma once

#include "../../amp/cfg_document.h"

/* Called as the program starts: from here on the first .cfg and the first .data file stay. */
void amp_documents_keep(void);

/* Reads a file as this Darknet does. The caller gives the document back. AMP_BAD_CONFIG: the file cannot be
 * read. */
amp_status amp_cfg_document(const char *file, cfg_document **out, amp_error *error);
amp_status amp_data_document(const char *file, cfg_document **out, amp_error *error);
void amp_document_give_back(cfg_document *); /* NULL is fine */
