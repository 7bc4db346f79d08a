/* Plays agents that `overtone export format=onnx` wrote. Link with libovertone_serve.
 *
 *     struct overtone_agent *agent;
 *     if (overtone_open("hopper-onnx", &agent)) puts(overtone_last_error());
 *     overtone_begin(agent, 1, NAN);                                  // a new episode
 *     overtone_act(agent, observation, 11, reward, action, 3);        // reward 0 at the first step
 *
 * Functions that return int return 0, or a code: 1 damaged file, 2 wrong call, 3 output not finite,
 * 4 bug in the library. After an error the agent acts as if there had been no call. Agents may be
 * used on different threads, each on one thread at a time. */
#ifndef OVERTONE_SERVE_H
#define OVERTONE_SERVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct overtone_agent;

/* A directory with agent.onnx and agent.json, or the contents of both files. */
int overtone_open(const char *path, struct overtone_agent **agent);
int overtone_load(const uint8_t *graph, size_t graph_size, const uint8_t *about, size_t about_size,
                  struct overtone_agent **agent);
void overtone_free(struct overtone_agent *agent);

/* Numbers of an observation; numbers of a continuous action, or the number of discrete actions. */
size_t overtone_observation_size(struct overtone_agent *agent);
size_t overtone_action_size(struct overtone_agent *agent);
int overtone_is_discrete(struct overtone_agent *agent);

/* NaN: the agent's own target return. */
int overtone_begin(struct overtone_agent *agent, uint64_t seed, float target_return);

/* Allows only these discrete actions at the next step: 0 or 1 for each. */
int overtone_allow(struct overtone_agent *agent, const uint8_t *allowed, size_t n_actions);

/* reward: of the last action. A discrete action is one number, its index. */
int overtone_act(struct overtone_agent *agent, const float *observation, size_t observation_size,
                 float reward, float *action, size_t action_size);

/* Replaces the last action by the one that was taken. */
int overtone_took(struct overtone_agent *agent, const float *action, size_t action_size);

/* A sentence about the last error on this thread, until the next one. */
const char *overtone_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
