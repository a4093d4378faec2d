/* SPDX-License-Identifier: BSD-3-Clause
 *
 * C tests of bus/. */
int test_map(void);
int test_map_model(void);
int test_map_file(void);
int test_map_saves(void);
int test_cluster_state(void);
int test_file_choice(void);
int test_bus_secret(void);
int test_bus_hold(void);
int test_bus_links(void);
int test_message(void);
int test_gossip(void);
int test_topology(void);
int test_set_slot(void);
int test_failure(void);
int test_election(void);
int test_manual_failover(void);
int test_orphans(void);
int test_seeds(void);
int test_slot_job(void);
int test_slot_moves(void);
int test_voters(void);
int test_shared_state(void);

int main(void) {
    int failed = 0;
    failed += test_map();
    failed += test_map_model();
    failed += test_map_file();
    failed += test_map_saves();
    failed += test_cluster_state();
    failed += test_file_choice();
    failed += test_bus_secret();
    failed += test_bus_hold();
    failed += test_bus_links();
    failed += test_message();
    failed += test_gossip();
    failed += test_topology();
    failed += test_set_slot();
    failed += test_failure();
    failed += test_election();
    failed += test_manual_failover();
    failed += test_orphans();
    failed += test_seeds();
    failed += test_slot_job();
    failed += test_slot_moves();
    failed += test_voters();
    failed += test_shared_state();
    return failed != 0;
}
