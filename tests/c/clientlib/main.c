/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tests of clientlib/. */
int test_async(void);
int test_cluster(void);
int test_cluster_nodes(void);
int test_context(void);
int test_format(void);
int test_interface(void);
int test_limits(void);
int test_memory(void);
int test_memory(void);
int test_reader(void);
int test_sentinel(void);

int main(void) {
    int failures = 0;
    failures += test_reader();
    failures += test_format();
    failures += test_context();
    failures += test_interface();
    failures += test_memory();
    failures += test_async();
    failures += test_limits();
    failures += test_cluster();
    failures += test_cluster_nodes();
    failures += test_sentinel();
    failures += test_memory();
    return failures != 0;
}
