/* Takes the place of CUDA's runtime under a real torch for CUDA 12 (by LD_PRELOAD), and plays one card.
   Memory of the card is the host's and copies work; a kernel computes nothing. STUB_FAULT says what is wrong. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int cudaError_t; /* numbers from CUDA's driver_types.h */
enum { SUCCESS = 0, MEMORY = 2, OLD_DRIVER = 35, HELD = 46, NO_DEVICE = 100, NO_KERNEL = 209, NOT_READY = 802 };
typedef struct { unsigned x, y, z; } dim3;
typedef struct { /* the beginning of cudaDeviceProp of CUDA 12 */
  char name[256], ids[28];
  size_t memory, shared_memory;
  int registers, warp_size;
  size_t pitch;
  int block_threads, block[3], grid[3], clock_rate;
  size_t constant_memory;
  int major, minor;
} Properties;

static cudaError_t last;
static cudaError_t fails(cudaError_t error) { return last = error; }
static int fault(const char *name) { const char *set = getenv("STUB_FAULT"); return set && !strcmp(set, name); }
static int number(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }

cudaError_t cudaGetDeviceCount(int *count) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW); /* the real runtime starts the driver here, too */
  if (driver) ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
  *count = 0;
  if (fault("old-driver")) return fails(OLD_DRIVER);
  if (fault("not-ready")) return fails(NOT_READY);
  const char *shown = getenv("CUDA_VISIBLE_DEVICES");
  *count = shown && !*shown ? 0 : number("STUB_COUNT", 1);
  return *count ? SUCCESS : fails(NO_DEVICE);
}
cudaError_t cudaDriverGetVersion(int *version) { *version = number("STUB_DRIVER_CUDA", 12080); return SUCCESS; }
cudaError_t cudaGetDevice(int *device) { *device = 0; return SUCCESS; }
cudaError_t cudaSetDevice(int device) { return SUCCESS; }
cudaError_t cudaGetDeviceProperties_v2(Properties *all, int device) {
  memset(all, 0, 1000);
  snprintf(all->name, sizeof all->name, "%s", getenv("STUB_NAME") ? getenv("STUB_NAME") : "Stub card");
  all->major = number("STUB_MAJOR", 8);
  all->memory = 16ull << 30;
  all->warp_size = 32;
  all->block_threads = all->block[0] = all->block[1] = 1024;
  all->block[2] = 64;
  all->grid[0] = 2147483647;
  all->grid[1] = all->grid[2] = 65535;
  *(int *)((char *)all + 388) = 1; /* multiProcessorCount */
  return SUCCESS;
}
cudaError_t cudaDeviceGetAttribute(int *value, int which, int device) { *value = 0; return SUCCESS; }
cudaError_t cudaDeviceGetStreamPriorityRange(int *low, int *high) { *low = 0; *high = -5; return SUCCESS; }
cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b) { *can = 0; return SUCCESS; }
cudaError_t cudaMemGetInfo(size_t *free, size_t *all) { *free = 1 << 20; *all = 16ull << 30; return SUCCESS; }
cudaError_t cudaMalloc(void **memory, size_t size) {
  if (fault("memory")) return fails(MEMORY);
  *memory = calloc(1, size);
  return SUCCESS;
}
cudaError_t cudaFree(void *memory) { return SUCCESS; }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
  memcpy(to, from, size);
  return SUCCESS;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t size, void *stream) { memset(to, value, size); return SUCCESS; }
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  if (fault("no-kernel")) return fails(NO_KERNEL);
  if (fault("held")) return fails(HELD);
  if (fault("abort")) abort();
  if (fault("hang")) pause();
  return SUCCESS;
}
cudaError_t cudaGetLastError(void) { cudaError_t error = last; last = SUCCESS; return error; }
cudaError_t cudaPeekAtLastError(void) { return last; }
cudaError_t cudaThreadExchangeStreamCaptureMode(int *mode) { return SUCCESS; }
cudaError_t cudaStreamIsCapturing(void *stream, int *status) { *status = 0; return SUCCESS; }
cudaError_t cudaStreamSynchronize(void *stream) { return SUCCESS; }
cudaError_t cudaDeviceSynchronize(void) { return SUCCESS; }
