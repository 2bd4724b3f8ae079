/* Every public operation, one line each: OP(name, family). `mica_<name>` is declared in
 * include/mica/ops/<family>.h.
 *
 * The tests walk this list: an operation without a case in tests/ops fails them, and so does one without a
 * line in docs. */
#ifndef MICA_SRC_OPS_LIST_H
#define MICA_SRC_OPS_LIST_H

#define MICA_OPS(OP) OP(add, elementwise)

#endif
