/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fixture of the tests of pubsub/. */
#include "pubsub_test.h"

#include "engine/engine.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "pubsub/pubsub.h"
#include "store/store.h"

static const feature *const features[] = {&pubsubFeature};
static const gate *const gates[] = {&pubsubContextGate, &monitorGate};

int pubsubTestSetUp(void **state) {
    (void)state; /* nothing to pass on */
    reason why = {0};
    storeInit(2, false);
    engineHot.dbs = storeDbs();
    hooksInstall(features, COUNT_OF(features), gates, COUNT_OF(gates));
    return pubsubFeature.init(&why) == OK ? 0 : -1;
}

int pubsubTestTearDown(void **state) {
    (void)state; /* nothing was passed on */
    reason why = {0};
    status st = pubsubFeature.on_shutdown(0, &why);
    hooksUninstall();
    storeShutdown();
    engineHot.dbs = NULL;
    return st == OK ? 0 : -1;
}

char *sentTo(session *s) {
    size_t len;
    char *copy = outbufCopy(&s->out, &len);
    outbufClear(&s->out);
    return copy;
}

uint32_t randomBelow(uint32_t n) {
    static uint64_t state = UINT64_C(88172645463325252);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % n);
}
