/* Stands in for NVIDIA's driver library, libcuda.so.1, which only a machine with a card has: the ten
 * functions that mxnet-cu112 links to directly. Each says that there is no device, so that MXNet can
 * be imported and finds no GPU. */

enum { NO_DEVICE = 100 }; /* CUDA_ERROR_NO_DEVICE */

int cuDeviceGet(void) { return NO_DEVICE; }
int cuDevicePrimaryCtxRetain(void) { return NO_DEVICE; }
int cuGetErrorString(void) { return NO_DEVICE; }
int cuGraphKernelNodeGetParams(void) { return NO_DEVICE; }
int cuGraphNodeGetType(void) { return NO_DEVICE; }
int cuLaunchKernel(void) { return NO_DEVICE; }
int cuModuleGetFunction(void) { return NO_DEVICE; }
int cuModuleLoadData(void) { return NO_DEVICE; }
int cuModuleLoadDataEx(void) { return NO_DEVICE; }
int cuModuleUnload(void) { return NO_DEVICE; }
