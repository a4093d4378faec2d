/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tests of the command line programs' parts that need no connection. */
int test_backup(void);
int test_cluster_nodes(void);
int test_cluster_options(void);
int test_cluster_plan(void);
int test_drawing(void);
int test_job_progress(void);
int test_cli_text(void);
int test_server_uri(void);
int test_terminal(void);
int test_top_keys(void);

int main(void) {
    int failures = 0;
    failures += test_backup();
    failures += test_cluster_nodes();
    failures += test_cluster_plan();
    failures += test_cluster_options();
    failures += test_terminal();
    failures += test_server_uri();
    failures += test_cli_text();
    failures += test_job_progress();
    failures += test_top_keys();
    failures += test_drawing();
    return failures != 0;
}
