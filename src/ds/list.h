/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Intrusive doubly linked list: the node is embedded in its owner, nothing is allocated. A node
 * that is in no list has next == NULL. Header only; O(1) throughout. */
#ifndef DS_LIST_H
#define DS_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/bytes.h"

typedef struct listNode {
    struct listNode *next, *prev;
} listNode;

/* The head is also a node: an empty list points to itself. */
typedef struct list {
    listNode head;
    size_t count;
} list;

static inline void listInit(list *l) {
    l->head.next = l->head.prev = &l->head;
    l->count = 0;
}
static inline bool listIsEmpty(const list *l) { return l->head.next == &l->head; }
static inline bool listHas(const listNode *n) { return n->next != NULL; }
static inline void listInsertBefore(list *l, listNode *at, listNode *n) {
    hotCheck(at->prev->next == at);
    n->next = at;
    n->prev = at->prev;
    at->prev->next = n;
    at->prev = n;
    l->count++;
}
static inline void listAppend(list *l, listNode *n) { listInsertBefore(l, &l->head, n); }
static inline void listPrepend(list *l, listNode *n) { listInsertBefore(l, l->head.next, n); }
static inline void listRemove(list *l, listNode *n) {
    hotCheck(n->prev->next == n);
    hotCheck(n->next->prev == n);
    hotCheck(l->count > 0);
    n->prev->next = n->next;
    n->next->prev = n->prev;
    n->next = n->prev = NULL;
    l->count--;
}
static inline listNode *listFirst(const list *l) { return listIsEmpty(l) ? NULL : l->head.next; }
static inline listNode *listLast(const list *l) { return listIsEmpty(l) ? NULL : l->head.prev; }
static inline listNode *listNext(const list *l, const listNode *n) {
    return n->next == &l->head ? NULL : n->next;
}
/* Moves all nodes to an empty list. */
static inline void listMoveAll(list *to, list *from) {
    hotCheck(listIsEmpty(to));
    if (listIsEmpty(from)) return;
    *to = *from;
    to->head.next->prev = to->head.prev->next = &to->head;
    listInit(from);
}

#define LIST_OWNER(node, type, field) CONTAINER_OF(node, type, field)

#endif
