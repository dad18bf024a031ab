/* A stand-in for libcuda.so.1: as much of it as torch 2.9 asks for before the first kernel. */
static int started;

int cuInit(unsigned flags) { started = 1; return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return started ? 0 : 3; } /* 3: CUDA_ERROR_NOT_INITIALIZED */
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { *flags = 0; *active = 1; return 0; }
