/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes of a batch. With one operation they are written once, and only the numbers in them
 * change from batch to batch; a mix is composed anew each time. */
#include "base/base.h"
#include "base/random.h"
#include "tools/benchmark/run_priv.h"

static void ensure(client *c, size_t size) {
    if (c->cap >= size) return;
    c->cap = size;
    c->request = memRealloc(c->request, size);
}

void batchInit(client *c) {
    const run *r = c->owner->run;
    const operation *op = r->load->operations;
    int copies = r->options->pipeline;
    ensure(c, c->prefix_len + op->len * (size_t)copies);
    c->len = c->prefix_len;
    if (r->load->count == 1) {
        for (int i = 0; i < copies; i++, c->len += op->len)
            memcpy(c->request + c->len, op->bytes, op->len);
        c->classes = op->classes;
        c->class_count = op->commands;
        return;
    }
    c->classes = memAlloc((size_t)copies);
    c->class_count = copies;
}

/* A slot of the client's node. */
static const char *pickTag(const client *c) {
    const target *now = atomic_load_explicit(&c->owner->run->slots, memory_order_acquire);
    for (int i = 0; i < now->count; i++) {
        const targetNode *n = &now->nodes[i];
        if (strcmp(n->id, c->node->id) != 0 || n->slot_count == 0) continue;
        return targetTag(n->slots[randomUniform((uint64_t)n->slot_count)]);
    }
    return targetTag((int)randomUniform(16384)); /* it has lost all its slots */
}

/* Fills the holes of an operation at `base`. */
static void fillHoles(client *c, const operation *op, char *base) {
    keySource *keys = &c->owner->run->keys;
    uint64_t numbers[KEY_PLACEHOLDERS];
    unsigned known = 0;
    const char *tag = NULL;
    for (int i = 0; i < op->hole_count; i++) {
        const hole *h = &op->holes[i];
        if (h->first) {
            known = 0;
            tag = NULL;
        }
        if (h->kind == HOLE_TAG) {
            if (!tag) tag = pickTag(c);
            memcpy(base + h->offset, tag, HOLE_TAG_SIZE);
            continue;
        }
        if (h->kind == HOLE_NUMBER || !(known >> h->kind & 1)) {
            numbers[h->kind] = keySourceNext(keys, h->kind);
            known |= 1U << h->kind;
        }
        keyWrite(base + h->offset, numbers[h->kind]);
    }
}

static const operation *pickOperation(const workload *w) {
    uint64_t at = randomUniform(w->weights);
    const operation *op = w->operations;
    while (at >= op->weight) at -= (op++)->weight;
    return op;
}

void batchFill(client *c) {
    const run *r = c->owner->run;
    const workload *w = r->load;
    int copies = r->options->pipeline;
    if (w->count == 1) {
        const operation *op = w->operations;
        if (op->hole_count == 0) return;
        char *base = c->request + c->prefix_len;
        for (int i = 0; i < copies; i++, base += op->len) fillHoles(c, op, base);
        return;
    }
    c->len = c->prefix_len;
    for (int i = 0; i < copies; i++) {
        const operation *op = pickOperation(w);
        ensure(c, c->len + op->len);
        memcpy(c->request + c->len, op->bytes, op->len);
        fillHoles(c, op, c->request + c->len);
        c->len += op->len;
        c->classes[i] = op->classes[0];
    }
}
