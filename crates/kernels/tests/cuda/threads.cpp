// Runs the threads of a block as fibers, in a fixed order.
//
// When no lane of a warp can run, the lanes that wait for the warp have met. When no warp can run,
// the block's barrier opens. Threads that have returned, or that wait for the block, take no part in
// a warp's collective operation.
//
// There are two orders. In one, warps take turns from one collective operation to the next, and
// copies are performed where a thread waits for them. The other order, `early`, runs each warp up to
// the block's barrier, the last thread and block first, and performs copies at once. A kernel that
// lacks a barrier or a wait gives other bits in one order than in the other.
#include "block.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>

using namespace emulated;

namespace {
enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber { ucontext_t start; jmp_buf at; bool begun; State state; };
const size_t STACK = 1 << 18;

Fiber fibers[1024];
jmp_buf scheduler;
Block* running;
Run body;
void** arguments;

void leave(State state) {
    Fiber& own = fibers[running->rank];
    own.state = state;
    if (!_setjmp(own.at)) _longjmp(scheduler, 1);
}
void wait(bool whole_block) { leave(whole_block ? AT_BLOCK : AT_WARP); }

// A fiber lives as long as the program: it runs a thread of every block.
void enter() {
    for (;;) {
        body(arguments);
        leave(DONE);
    }
}

void set_thread(Block& block, unsigned rank) {
    block.rank = rank;
    block.thread = {rank % block.size.x, rank / block.size.x % block.size.y, rank / block.size.x / block.size.y};
}

void resume(Block& block, unsigned rank) {
    Fiber& fiber = fibers[rank];
    set_thread(block, rank);
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.at, 1);
    fiber.begun = true;
    void* stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || getcontext(&fiber.start)) { perror("stack of a thread"); abort(); }
    fiber.start.uc_stack.ss_sp = stack;
    fiber.start.uc_stack.ss_size = STACK;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, enter, 0);
    setcontext(&fiber.start);
}

// Runs the lanes of a warp until each of them waits or is done. Returns whether some have met.
bool run_warp(Block& block, unsigned warp, unsigned n_threads) {
    unsigned first = warp * 32, n = n_threads - first < 32 ? n_threads - first : 32;
    for (unsigned i = 0; i < n; i++) {
        unsigned rank = first + (block.early ? n - 1 - i : i);
        if (fibers[rank].state == READY) resume(block, rank);
    }
    unsigned present = 0;
    for (unsigned i = 0; i < n; i++)
        if (fibers[first + i].state == AT_WARP) { present |= 1u << i; fibers[first + i].state = READY; }
    if (!present) return false;
    block.warps[warp].present = present;
    block.warps[warp].turn++;
    return true;
}

void run_block(Block& block, unsigned n_threads) {
    unsigned n_warps = (n_threads + 31) / 32;
    for (unsigned t = 0; t < n_threads; t++) {
        fibers[t].state = READY;
        block.copies[t].first = block.copies[t].last = block.copies[t].group = 0;
    }
    for (bool waits = true; waits;) {
        for (bool meet = true; meet;) {
            meet = false;
            for (unsigned i = 0; i < n_warps; i++)
                while (run_warp(block, block.early ? n_warps - 1 - i : i, n_threads)) {
                    meet = true;
                    if (!block.early) break;
                }
        }
        waits = false;
        for (unsigned t = 0; t < n_threads; t++)
            if (fibers[t].state == AT_BLOCK) { fibers[t].state = READY; waits = true; }
    }
}
}

void emulated::run_blocks(Block& block, Run run, void** parameters) {
    running = &block; body = run; arguments = parameters; block.wait = wait;
    unsigned n_threads = block.size.x * block.size.y * block.size.z;
    auto [x, y, z] = block.grid;
    for (unsigned i = 0; i < x * y * z; i++) {
        unsigned at = block.early ? x * y * z - 1 - i : i;
        block.at = {at % x, at / x % y, at / x / y};
        run_block(block, n_threads);
    }
}
