/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of engine/. */
int test_block(void);
int test_child(void);
int test_command(void);
int test_ctx(void);
int test_deliver(void);
int test_dictionary_trainer(void);
int test_execute(void);
int test_filter(void);
int test_hooks(void);
int test_job_turns(void);
int test_measure(void);
int test_pause(void);
int test_propagate(void);
int test_registries(void);
int test_server_event(void);
int test_session(void);
int test_subsystem(void);
int test_transaction(void);

int main(void) {
    int failed = 0;
    failed += test_block();
    failed += test_child();
    failed += test_command();
    failed += test_ctx();
    failed += test_deliver();
    failed += test_dictionary_trainer();
    failed += test_execute();
    failed += test_filter();
    failed += test_hooks();
    failed += test_job_turns();
    failed += test_measure();
    failed += test_pause();
    failed += test_propagate();
    failed += test_registries();
    failed += test_server_event();
    failed += test_session();
    failed += test_subsystem();
    failed += test_transaction();
    return failed != 0;
}
