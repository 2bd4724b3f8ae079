/* Tables from text in memory. */
#ifndef MICA_TESTS_DATA_TABLE_CASE_H
#define MICA_TESTS_DATA_TABLE_CASE_H

#include <mica/table.h>

/* mica_table_scan_memory and _load_memory of a string, as "file". */
mica_status table_scan(mica_context *ctx, mica_table **table, const char *text, const mica_scan_opts *opts);
mica_status table_load(mica_context *ctx, mica_dataset *set, const mica_table *table, const char *text,
                       const mica_table_read_opts *opts);

/* "kind name" of every column, a comma between them. */
const char *table_kinds(const mica_table *table);

#endif
