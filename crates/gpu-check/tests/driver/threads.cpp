// Runs the threads of a block as fibers, one after the other.
//
// A fiber runs until it waits for its warp or its block. When no lane of a warp can run, the lanes
// that wait for the warp have met. When no warp can run, the block's barrier opens. Threads that
// have returned, or that wait for the block, take no part in a warp's collective operation.
#include "block.h"
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

using namespace emulated;

namespace {
enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber { void* stack_pointer; char* stack; State state; };
const size_t STACK = 1 << 18;

Fiber fibers[1024];
void* scheduler;
Block* running;
Run body;
void** arguments;
// `EMULATED_ORDER=reverse` runs threads in the opposite order, which can show races.
const bool reversed = [] { const char* order = getenv("EMULATED_ORDER"); return order && *order == 'r'; }();
}

// Saves the callee-saved registers on the current stack, stores its pointer, and continues on the
// other stack (System V x86-64).
extern "C" void switch_stack(void** from, void* to);
asm(".text\n.globl switch_stack\n.hidden switch_stack\nswitch_stack:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void enter() {
    body(arguments);
    Fiber& own = fibers[running->rank];
    own.state = DONE;
    switch_stack(&own.stack_pointer, scheduler);
    abort();
}

static void wait(bool whole_block) {
    Fiber& own = fibers[running->rank];
    own.state = whole_block ? AT_BLOCK : AT_WARP;
    switch_stack(&own.stack_pointer, scheduler);
}

static void set_thread(Block& block, unsigned rank) {
    block.rank = rank;
    block.thread = {rank % block.size.x, rank / block.size.x % block.size.y, rank / block.size.x / block.size.y};
}

// Runs the lanes of a warp until each of them is done or waits for the block.
static void run_warp(Block& block, unsigned warp, unsigned n_threads) {
    unsigned first = warp * 32, n = n_threads - first < 32 ? n_threads - first : 32;
    for (;;) {
        for (unsigned i = 0; i < n; i++) {
            unsigned rank = first + (reversed ? n - 1 - i : i);
            if (fibers[rank].state != READY) continue;
            set_thread(block, rank);
            switch_stack(&scheduler, fibers[rank].stack_pointer);
        }
        unsigned present = 0;
        for (unsigned i = 0; i < n; i++) if (fibers[first + i].state == AT_WARP) present |= 1u << i;
        if (!present) return;
        for (unsigned i = 0; i < n; i++) if (present >> i & 1) fibers[first + i].state = READY;
        block.warps[warp].present = present;
        block.warps[warp].turn++;
    }
}

static void run_block(Block& block, unsigned n_threads) {
    for (unsigned t = 0; t < n_threads; t++) {
        Fiber& fiber = fibers[t];
        if (!fiber.stack) {
            void* stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack == MAP_FAILED) { perror("stack of a thread"); abort(); }
            fiber.stack = (char*)stack;
        }
        // Six registers, then where `ret` goes: the stack is then aligned as after a call.
        void** top = (void**)(fiber.stack + STACK) - 10;
        top[6] = (void*)enter;
        fiber.stack_pointer = top;
        fiber.state = READY;
    }
    unsigned n_warps = (n_threads + 31) / 32;
    for (;;) {
        for (unsigned i = 0; i < n_warps; i++) run_warp(block, reversed ? n_warps - 1 - i : i, n_threads);
        bool waits = false;
        for (unsigned t = 0; t < n_threads; t++)
            if (fibers[t].state == AT_BLOCK) { fibers[t].state = READY; waits = true; }
        if (!waits) return;
    }
}

void emulated::run_blocks(Block& block, Run run, void** parameters, bool waits) {
    running = &block; body = run; arguments = parameters; block.wait = wait;
    unsigned n_threads = block.size.x * block.size.y * block.size.z;
    Place& at = block.at;
    for (at.z = 0; at.z < block.grid.z; at.z++)
        for (at.y = 0; at.y < block.grid.y; at.y++)
            for (at.x = 0; at.x < block.grid.x; at.x++) {
                if (waits) { run_block(block, n_threads); continue; }
                for (unsigned t = 0; t < n_threads; t++) { set_thread(block, t); run(parameters); }
            }
}
