/* A stand-in for libnvidia-ml.so.1. STUB_CARDS holds "name|uuid|bytes|major|minor;..." in PCI order,
   and STUB_SLICES the MIG slices of these cards in the same form, which NVML finds by UUID alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char name[1024], uuid[96]; unsigned long long bytes; int major, minor; } Card;

static int read_from(const char *text, Card *cards) {
  int count = 0;
  while (text && *text && count < 8) {
    Card *card = &cards[count++];
    memset(card, 0, sizeof *card);
    sscanf(text, "%1023[^|]|%95[^|]|%llu|%d|%d", card->name, card->uuid, &card->bytes, &card->major, &card->minor);
    text = strchr(text, ';');
    if (text) text++;
  }
  return count;
}

static int read_cards(Card *cards) { return read_from(getenv("STUB_CARDS"), cards); }

#define SLICES 100 /* the handles of slices begin here */

static Card *at(void *handle) {
  static Card cards[8];
  long number = (long)handle;
  if (number >= SLICES) return read_from(getenv("STUB_SLICES"), cards), &cards[number - SLICES];
  return read_cards(cards) >= number ? &cards[number - 1] : NULL;
}

int nvmlInit_v2(void) { return getenv("STUB_NVML_BROKEN") ? 9 : 0; } /* 9: driver not loaded */
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlDeviceGetCount_v2(unsigned *n) { Card cards[8]; *n = read_cards(cards); return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "575.57.08"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) {
  *v = getenv("STUB_DRIVER_CUDA") ? atoi(getenv("STUB_DRIVER_CUDA")) : 12080;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle) { *handle = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
  Card cards[8];
  for (int i = 0, n = read_cards(cards); i < n; i++)
    if (!strcmp(cards[i].uuid, uuid)) { *handle = (void *)(long)(i + 1); return 0; }
  for (int i = 0, n = read_from(getenv("STUB_SLICES"), cards); i < n; i++)
    if (!strcmp(cards[i].uuid, uuid)) { *handle = (void *)(long)(SLICES + i); return 0; }
  return 6; /* not found */
}
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *later) {
  if ((long)h >= SLICES) return 2; /* invalid argument: a slice has no mode of its own */
  *now = *later = getenv("STUB_SLICES") != NULL;
  return 0;
}
int nvmlDeviceGetName(void *h, char *text, unsigned size) { snprintf(text, size, "%s", at(h)->name); return 0; }
int nvmlDeviceGetUUID(void *h, char *text, unsigned size) { snprintf(text, size, "%s", at(h)->uuid); return 0; }
int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *m) {
  if (!at(h)->bytes) return 3; /* not supported */
  m[0] = at(h)->bytes, m[1] = m[0] / 2, m[2] = m[0] - m[1];
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor) {
  if (!at(h)->major) return 3;
  *major = at(h)->major, *minor = at(h)->minor;
  return 0;
}
