// A CUDA driver without a GPU: `libcuda.so` with the functions that cubecl calls, to count launches
// and copies. Nothing is computed: launches and copies are dropped, device memory has addresses only,
// and the host reads zeros. While a stream is recorded, calls that CUDA refuses there are refused.
// `CUDA_COUNTS=path` names a file that holds the counters below.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define API extern "C" int
typedef unsigned long long Pointer;
enum { SUCCESS = 0, INVALID = 1, REFUSED = 900 };

// Read by gpu-check in this order, as 64-bit words.
struct Counts { std::atomic<uint64_t> launches, to_device, bytes_to_device, to_host, replays, replayed; };

static Counts& counts() {
    static Counts* shared = [] {
        const char* path = getenv("CUDA_COUNTS");
        int file = path ? open(path, O_RDWR | O_CREAT, 0644) : -1;
        if (file < 0 || ftruncate(file, sizeof(Counts))) return new Counts();
        void* map = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        return map == MAP_FAILED ? new Counts() : (Counts*)map;
    }();
    return *shared;
}

// ---- devices and contexts: one device like an H100

API cuInit(unsigned) { return SUCCESS; }
API cuDriverGetVersion(int* version) { *version = 13000; return SUCCESS; }
API cuDeviceGetCount(int* count) { *count = 1; return SUCCESS; }
API cuDeviceGet(int* device, int index) { *device = index; return index == 0 ? SUCCESS : INVALID; }
API cuDeviceGetName(char* name, int length, int) { snprintf(name, length, "an H100 that only counts"); return SUCCESS; }
API cuDeviceGetPCIBusId(char* id, int length, int) { snprintf(id, length, "0000:00:00.0"); return SUCCESS; }
API cuDeviceTotalMem_v2(size_t* bytes, int) { *bytes = (size_t)80 << 30; return SUCCESS; }
API cuDeviceGetUuid(char* id, int) { memset(id, 0, 16); return SUCCESS; }
API cuDeviceGetUuid_v2(char* id, int) { memset(id, 0, 16); return SUCCESS; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 1: case 2: case 3: *value = 1024; break;      // threads of a block, its x and y
        case 4: *value = 64; break;                        // its z
        case 5: *value = 0x7fffffff; break;                // blocks in x
        case 6: case 7: *value = 65535; break;             // in y and z
        case 8: *value = 48 << 10; break;                  // shared memory of a block
        case 10: *value = 32; break;                       // threads of a warp
        case 16: *value = 132; break;                      // multiprocessors
        case 75: *value = 9; break;                        // compute capability
        case 76: *value = 0; break;
        case 97: *value = 227 << 10; break;                // shared memory that can be asked for
        case 115: *value = 1; break;                       // memory pools
        default: *value = 0;
    }
    return SUCCESS;
}
static void* const CONTEXT = (void*)8;
API cuDevicePrimaryCtxRetain(void** context, int) { *context = CONTEXT; return SUCCESS; }
API cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
API cuCtxSetCurrent(void*) { return SUCCESS; }
API cuCtxGetCurrent(void** context) { *context = CONTEXT; return SUCCESS; }
API cuCtxSynchronize() { return SUCCESS; }
API cuCtxGetStreamPriorityRange(int* least, int* greatest) { *least = 0; *greatest = -5; return SUCCESS; }
API cuGetErrorName(int, const char** text) { *text = "an error of the driver that counts"; return SUCCESS; }
API cuGetErrorString(int code, const char** text) {
    *text = code == REFUSED ? "not possible while a stream is recorded" : "see the number";
    return SUCCESS;
}

// ---- graphs: what was recorded is only counted

struct Graph { uint64_t nodes, to_device, bytes; };
static Graph* recorded;
static void* recorded_stream;

// Counts a launch (`bytes` is -1) or a copy to the device, or adds it to what is recorded.
static int add(void* stream, int64_t bytes) {
    if (recorded && stream == recorded_stream) {
        recorded->nodes++;
        if (bytes >= 0) { recorded->to_device++; recorded->bytes += bytes; }
    } else if (bytes < 0) counts().launches++;
    else { counts().to_device++; counts().bytes_to_device += bytes; }
    return SUCCESS;
}
// Counts a copy or fill on the device.
static int add_inner(void* stream) {
    if (recorded && stream == recorded_stream) recorded->nodes++;
    return SUCCESS;
}

API cuStreamBeginCapture_v2(void* stream, int) {
    if (recorded) return REFUSED;
    recorded = new Graph(); recorded_stream = stream;
    return SUCCESS;
}
API cuStreamEndCapture(void*, Graph** graph) { *graph = recorded; recorded = nullptr; return *graph ? SUCCESS : INVALID; }
API cuStreamIsCapturing(void* stream, int* status) { *status = recorded && stream == recorded_stream; return SUCCESS; }
API cuGraphGetNodes(Graph* graph, void** nodes, size_t* n) {
    if (nodes) for (size_t i = 0; i < *n; i++) nodes[i] = nullptr;
    *n = graph->nodes;
    return SUCCESS;
}
API cuGraphNodeGetType(void*, int* type) { *type = 0; return SUCCESS; }  // a kernel
API cuGraphInstantiateWithFlags(Graph** copy, Graph* graph, unsigned long long) { *copy = new Graph(*graph); return SUCCESS; }
API cuGraphUpload(Graph*, void*) { return SUCCESS; }
API cuGraphLaunch(Graph* graph, void*) {
    if (recorded) return REFUSED;
    counts().replays++; counts().replayed += graph->nodes;
    counts().to_device += graph->to_device; counts().bytes_to_device += graph->bytes;
    return SUCCESS;
}
API cuGraphDestroy(Graph* graph) { delete graph; return SUCCESS; }
API cuGraphExecDestroy(Graph* graph) { delete graph; return SUCCESS; }

// ---- streams and events

API cuStreamCreate(void** stream, unsigned) { *stream = malloc(8); return SUCCESS; }
API cuStreamCreateWithPriority(void** stream, unsigned, int) { *stream = malloc(8); return SUCCESS; }
API cuStreamDestroy_v2(void* stream) { free(stream); return SUCCESS; }
API cuStreamSynchronize(void*) { return recorded ? REFUSED : SUCCESS; }
API cuStreamWaitEvent(void*, void*, unsigned) { return SUCCESS; }
typedef std::chrono::steady_clock Clock;
struct Event { Clock::time_point at; };
API cuEventCreate(Event** event, unsigned) { *event = new Event(); return SUCCESS; }
API cuEventDestroy_v2(Event* event) { delete event; return SUCCESS; }
API cuEventRecord(Event* event, void*) { event->at = Clock::now(); return SUCCESS; }
API cuEventQuery(Event*) { return SUCCESS; }
API cuEventSynchronize(Event*) { return SUCCESS; }
API cuEventElapsedTime_v2(float* ms, Event* start, Event* end) {
    *ms = std::chrono::duration<float, std::milli>(end->at - start->at).count();
    return SUCCESS;
}
API cuEventElapsedTime(float* ms, Event* start, Event* end) { return cuEventElapsedTime_v2(ms, start, end); }

// ---- memory

static int allocate(Pointer* to, size_t bytes) {
    static std::atomic<Pointer> next{1ull << 40};
    if (recorded) return REFUSED;
    *to = next.fetch_add((bytes + 511) / 512 * 512);
    return SUCCESS;
}
API cuMemAlloc_v2(Pointer* to, size_t bytes) { return allocate(to, bytes); }
API cuMemAllocAsync(Pointer* to, size_t bytes, void*) { return allocate(to, bytes); }
API cuMemAllocHost_v2(void** to, size_t bytes) { return recorded ? REFUSED : (*to = calloc(bytes, 1)) ? SUCCESS : INVALID; }
API cuMemFree_v2(Pointer) { return SUCCESS; }
API cuMemFreeAsync(Pointer, void*) { return SUCCESS; }
API cuMemFreeHost(void* memory) { free(memory); return SUCCESS; }
API cuMemGetInfo_v2(size_t* left, size_t* all) { *left = *all = (size_t)80 << 30; return SUCCESS; }

static int read(void* to, size_t bytes) {
    if (recorded) return REFUSED;
    counts().to_host++;
    memset(to, 0, bytes);
    return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(Pointer, const void*, size_t bytes, void* stream) { return add(stream, bytes); }
API cuMemcpyHtoD_v2(Pointer, const void*, size_t bytes) { return add(nullptr, bytes); }
API cuMemcpyDtoHAsync_v2(void* to, Pointer, size_t bytes, void*) { return read(to, bytes); }
API cuMemcpyDtoH_v2(void* to, Pointer, size_t bytes) { return read(to, bytes); }
API cuMemcpyDtoDAsync_v2(Pointer, Pointer, size_t, void* stream) { return add_inner(stream); }
API cuMemsetD8Async(Pointer, unsigned char, size_t, void* stream) { return add_inner(stream); }
// `CUDA_MEMCPY2D`: rows of `width` bytes between pitched and dense memory. Kinds: 1 host, 2 device.
struct Side { size_t x, y; int kind; void* host; Pointer device; void* array; size_t pitch; };
struct Copy2d { Side from, to; size_t width, height; };
API cuMemcpy2DAsync_v2(const Copy2d* copy, void* stream) {
    const Side& to = copy->to;
    if (to.kind != 1) return copy->from.kind == 1 ? add(stream, copy->width * copy->height) : add_inner(stream);
    for (size_t row = 0; row < copy->height; row++)
        if (read((char*)to.host + (to.y + row) * to.pitch + to.x, copy->width)) return REFUSED;
    return SUCCESS;
}

// ---- modules and launches

API cuModuleLoadData(void** module, const char*) { *module = CONTEXT; return SUCCESS; }
API cuModuleUnload(void*) { return SUCCESS; }
API cuModuleGetFunction(void** function, void*, const char*) { *function = CONTEXT; return SUCCESS; }
API cuFuncSetAttribute(void*, int, int) { return SUCCESS; }
API cuFuncGetAttribute(int* value, int, void*) { *value = 0; return SUCCESS; }
API cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void**, void**) {
    if (!gx || !gy || !gz || bx * by * bz == 0 || bx * by * bz > 1024 || gy > 65535 || gz > 65535 || shared > 227 << 10) return INVALID;
    return add(stream, -1);
}
