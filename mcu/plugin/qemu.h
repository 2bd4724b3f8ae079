/* What is used of QEMU's plugin interface, version 1 (QEMU 4.2 to 8.2). Declared here because Debian ships QEMU with plugins
 * enabled but without their header. */
#ifndef MCU_PLUGIN_QEMU_H
#define MCU_PLUGIN_QEMU_H

#include <stddef.h>
#include <stdint.h>

enum { qemu_plugin_interface = 1 };

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;   /* a block of instructions, translated at once */
struct qemu_plugin_insn; /* one of them */

/* The beginning of QEMU's struct: what follows is not needed. */
struct qemu_info {
    const char *target_name; /* "arm", "riscv32" */
};

typedef void (*qemu_plugin_translate)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*qemu_plugin_execute)(unsigned cpu, void *data);
typedef void (*qemu_plugin_exit)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_translate call);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, qemu_plugin_execute call, int flags,
                                          void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_execute call,
                                            int flags, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_exit call, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#endif
