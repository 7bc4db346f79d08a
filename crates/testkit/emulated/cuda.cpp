// A CUDA driver without a GPU, for tests: `libcuda.so` with the functions that cubecl calls.
//
// Device memory is host memory, and streams are in order, because every call finishes before it
// returns. Launches of PTX (from NVIDIA's NVRTC) are counted and dropped, and the host then reads
// zeros. Launches of kernels that `nvrtc.cpp` compiled for the CPU are run. While a stream is recorded, calls that CUDA refuses
// there are refused. `CUDA_COUNTS=path` names a file that holds the counters below.
#include "block.h"
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace emulated;

#define API extern "C" int
typedef unsigned long long Pointer;
enum { SUCCESS = 0, INVALID = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, REFUSED = 900 };

// Read by gpu-check in this order, as 64-bit words.
struct Counts { std::atomic<uint64_t> launches, to_device, bytes_to_device, to_host, on_device, sets, replays, replayed, waits; };

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
API cuDeviceGetName(char* name, int length, int) { snprintf(name, length, "NVIDIA H100 (emulated)"); return SUCCESS; }
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
API cuCtxSynchronize() { counts().waits++; return SUCCESS; }
API cuCtxGetStreamPriorityRange(int* least, int* greatest) { *least = 0; *greatest = -5; return SUCCESS; }
API cuGetErrorName(int, const char** text) { *text = "an error of the emulated driver"; return SUCCESS; }
API cuGetErrorString(int code, const char** text) {
    *text = code == REFUSED ? "not possible while a stream is recorded" : "see the number";
    return SUCCESS;
}

// ---- graphs: a recorded stream is a list of launches and copies

struct Function { Run run; const unsigned* sizes; bool waits; Block** block; };
struct Node {
    int kind;                       // 0 launch, 1 copy, 2 fill
    Function function; Place grid, size; unsigned shared; std::vector<std::vector<char>> parameters;
    char *to; const char* from; size_t bytes, rows, to_pitch, from_pitch; bool is_sent; int value;
};
struct Graph { std::vector<Node> nodes; };
// `EMULATED_ORDER=early` runs kernels in the other order of `threads.cpp`.
static const bool early = [] { const char* order = getenv("EMULATED_ORDER"); return order && *order == 'e'; }();
static Graph* recorded;
static void* recorded_stream;

static void run(const Node& node) {
    if (node.kind == 1) {
        if (node.is_sent) { counts().to_device++; counts().bytes_to_device += node.bytes * node.rows; }
        else counts().on_device++;
        for (size_t row = 0; row < node.rows; row++)
            memmove(node.to + row * node.to_pitch, node.from + row * node.from_pitch, node.bytes);
        return;
    }
    if (node.kind == 2) { memset(node.to, node.value, node.bytes); return; }
    if (!node.function.run) return;
    static Block block;
    static char* shared = (char*)aligned_alloc(1024, 256 << 10);
    block.grid = node.grid; block.size = node.size; block.shared = shared;
    block.early = early;
    *node.function.block = &block;
    std::vector<void*> parameters;
    for (auto& parameter : node.parameters) parameters.push_back((void*)parameter.data());
    run_blocks(block, node.function.run, parameters.data(), node.function.waits);
}
static int add(Node&& node, void* stream) {
    if (recorded && stream == recorded_stream) recorded->nodes.push_back(std::move(node));
    else run(node);
    return SUCCESS;
}

API cuStreamBeginCapture_v2(void* stream, int) {
    if (recorded) return REFUSED;
    recorded = new Graph(); recorded_stream = stream;
    return SUCCESS;
}
API cuStreamEndCapture(void*, Graph** graph) { *graph = recorded; recorded = nullptr; return *graph ? SUCCESS : INVALID; }
API cuStreamIsCapturing(void* stream, int* status) { *status = recorded && stream == recorded_stream; return SUCCESS; }
API cuGraphGetNodes(Graph* graph, Node** nodes, size_t* n) {
    if (nodes) for (size_t i = 0; i < *n && i < graph->nodes.size(); i++) nodes[i] = &graph->nodes[i];
    *n = graph->nodes.size();
    return SUCCESS;
}
API cuGraphNodeGetType(Node* node, int* type) { *type = node->kind; return SUCCESS; }
API cuGraphInstantiateWithFlags(Graph** copy, Graph* graph, unsigned long long) { *copy = new Graph(*graph); return SUCCESS; }
API cuGraphUpload(Graph*, void*) { return SUCCESS; }
API cuGraphLaunch(Graph* graph, void*) {
    if (recorded) return REFUSED;
    counts().replays++; counts().replayed += graph->nodes.size();
    for (auto& node : graph->nodes) run(node);
    return SUCCESS;
}
API cuGraphDestroy(Graph* graph) { delete graph; return SUCCESS; }
API cuGraphExecDestroy(Graph* graph) { delete graph; return SUCCESS; }

// ---- streams and events

API cuStreamCreate(void** stream, unsigned) { *stream = malloc(8); return SUCCESS; }
API cuStreamCreateWithPriority(void** stream, unsigned, int) { *stream = malloc(8); return SUCCESS; }
API cuStreamDestroy_v2(void* stream) { free(stream); return SUCCESS; }
API cuStreamSynchronize(void*) { counts().waits++; return recorded ? REFUSED : SUCCESS; }
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

// Pages are reserved only when they are touched, so a step of any size fits. `CUDA_POISON=1` fills
// new memory with NaN, so that results show reads of what was never written.
static char* reserve(size_t bytes) {
    void* memory = mmap(nullptr, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    static const bool poison = getenv("CUDA_POISON") != nullptr;
    if (poison) memset(memory, 0xff, bytes + 4096);
    *(size_t*)memory = bytes + 4096;
    return (char*)memory + 4096;
}
static int allocate(void* to, size_t bytes) {
    if (recorded) return REFUSED;
    char* memory = reserve(bytes);
    memcpy(to, &memory, sizeof memory);
    return memory ? SUCCESS : OUT_OF_MEMORY;
}
static int release(char* memory) {
    if (memory) munmap(memory - 4096, *(size_t*)(memory - 4096));
    return SUCCESS;
}
API cuMemAlloc_v2(Pointer* to, size_t bytes) { return allocate(to, bytes); }
API cuMemAllocAsync(Pointer* to, size_t bytes, void*) { return allocate(to, bytes); }
API cuMemAllocHost_v2(void** to, size_t bytes) { return allocate(to, bytes); }
API cuMemFree_v2(Pointer memory) { return release((char*)memory); }
API cuMemFreeAsync(Pointer memory, void*) { return release((char*)memory); }
API cuMemFreeHost(void* memory) { return release((char*)memory); }
API cuMemGetInfo_v2(size_t* left, size_t* all) { *left = *all = (size_t)80 << 30; return SUCCESS; }

// A copy from the host can be recorded. The graph then reads the host's memory again at each replay.
static int copy(void* to, const void* from, size_t bytes, bool is_sent, void* stream) {
    Node node{}; node.kind = 1; node.to = (char*)to; node.from = (const char*)from; node.bytes = bytes;
    node.rows = 1; node.is_sent = is_sent;
    return add(std::move(node), stream);
}
static bool drops_launches;
static int read(void* to, Pointer from, size_t bytes) {
    if (recorded) return REFUSED;
    counts().to_host++;
    if (drops_launches) memset(to, 0, bytes); else memcpy(to, (void*)from, bytes);
    return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void* stream) { return copy((void*)to, from, bytes, true, stream); }
API cuMemcpyHtoD_v2(Pointer to, const void* from, size_t bytes) { return copy((void*)to, from, bytes, true, nullptr); }
API cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void*) { return read(to, from, bytes); }
API cuMemcpyDtoH_v2(void* to, Pointer from, size_t bytes) { return read(to, from, bytes); }
API cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes, void* stream) { return copy((void*)to, (void*)from, bytes, false, stream); }
API cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void* stream) {
    counts().sets++;
    Node node{}; node.kind = 2; node.to = (char*)to; node.value = value; node.bytes = bytes;
    return add(std::move(node), stream);
}
// `CUDA_MEMCPY2D`: rows of `width` bytes between pitched and dense memory. Kinds: 1 host, 2 device.
struct Side { size_t x, y; int kind; void* host; Pointer device; void* array; size_t pitch; };
struct Copy2d { Side from, to; size_t width, height; };
API cuMemcpy2DAsync_v2(const Copy2d* copy, void* stream) {
    auto start = [](const Side& side) { return (char*)(side.kind == 1 ? side.host : (void*)side.device) + side.y * side.pitch + side.x; };
    if (copy->to.kind == 1) {
        if (recorded) return REFUSED;
        counts().to_host++;
        for (size_t row = 0; row < copy->height; row++)
            if (char* to = start(copy->to) + row * copy->to.pitch; drops_launches) memset(to, 0, copy->width);
            else memcpy(to, start(copy->from) + row * copy->from.pitch, copy->width);
        return SUCCESS;
    }
    Node node{}; node.kind = 1; node.to = start(copy->to); node.from = start(copy->from); node.bytes = copy->width;
    node.rows = copy->height; node.to_pitch = copy->to.pitch; node.from_pitch = copy->from.pitch;
    node.is_sent = copy->from.kind == 1;
    return add(std::move(node), stream);
}

// ---- modules and launches

// An image is PTX, or `library:` and the path of a library that `nvrtc.cpp` made.
API cuModuleLoadData(void** module, const char* image) {
    *module = nullptr;
    if (strncmp(image, "library:", 8)) { drops_launches = true; return SUCCESS; }
    *module = dlopen(image + 8, RTLD_NOW | RTLD_LOCAL);
    if (!*module) fprintf(stderr, "emulated driver: %s\n", dlerror());
    return *module ? SUCCESS : INVALID_IMAGE;
}
API cuModuleUnload(void*) { return SUCCESS; }
API cuModuleGetFunction(Function** function, void* module, const char* name) {
    *function = new Function{};
    if (!module) return SUCCESS;
    char symbol[512];
    auto find = [&](const char* prefix, const char* of) { snprintf(symbol, sizeof symbol, "%s%s", prefix, of); return dlsym(module, symbol); };
    (*function)->run = (Run)find("emulated_run_", name);
    (*function)->sizes = (const unsigned*)find("emulated_sizes_", name);
    (*function)->block = (Block**)find("emulated_block", "");
    const bool* waits = (const bool*)find("emulated_waits", "");
    if (!(*function)->run || !(*function)->sizes || !(*function)->block || !waits) return NOT_FOUND;
    (*function)->waits = *waits;
    return SUCCESS;
}
API cuFuncSetAttribute(Function*, int, int) { return SUCCESS; }
API cuFuncGetAttribute(int* value, int, Function*) { *value = 0; return SUCCESS; }
API cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** parameters, void**) {
    if (!gx || !gy || !gz || bx * by * bz == 0 || bx * by * bz > 1024 || gy > 65535 || gz > 65535 || shared > 227 << 10) return INVALID;
    counts().launches++;
    Node node{}; node.function = *function; node.grid = {gx, gy, gz}; node.size = {bx, by, bz}; node.shared = shared;
    if (function->sizes)
        for (unsigned i = 0; function->sizes[i]; i++)
            node.parameters.emplace_back((char*)parameters[i], (char*)parameters[i] + function->sizes[i]);
    return add(std::move(node), stream);
}
