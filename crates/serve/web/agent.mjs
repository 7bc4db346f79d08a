// An exported agent in a browser or in Node, on overtone_serve.wasm.
//
//     const agent = await Agent.load("overtone_serve.wasm", "cartpole-onnx");
//     agent.begin(1);
//     const action = agent.act(observation, reward);    // an index, or a Float32Array
//
// `Agent.of(wasm, graph, about)` takes the bytes of the three files.

export class Agent {
  static async load(wasm, folder) {
    const files = [wasm, `${folder}/agent.onnx`, `${folder}/agent.json`].map(async (path) => {
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      return new Uint8Array(await answer.arrayBuffer());
    });
    return Agent.of(...(await Promise.all(files)));
  }

  static async of(wasm, graph, about) {
    const { instance } = await WebAssembly.instantiate(wasm, {});
    const agent = new Agent();
    agent.call = instance.exports;
    const [place, first, second] = [agent.copy(new Uint8Array(4)), agent.copy(graph), agent.copy(about)];
    agent.check(agent.call.overtone_load(first, graph.length, second, about.length, place));
    agent.handle = new Uint32Array(agent.call.memory.buffer, place, 1)[0];
    agent.call.overtone_release(place, 4);
    agent.call.overtone_release(first, graph.length);
    agent.call.overtone_release(second, about.length);
    agent.size = agent.call.overtone_observation_size(agent.handle);
    agent.isDiscrete = agent.call.overtone_is_discrete(agent.handle) === 1;
    agent.width = agent.isDiscrete ? 1 : agent.call.overtone_action_size(agent.handle);
    agent.observation = agent.call.overtone_allocate(4 * agent.size);
    agent.action = agent.call.overtone_allocate(4 * agent.width);
    return agent;
  }

  /** Starts an episode; without a target return, the agent's own. */
  begin(seed = 0, targetReturn = undefined) {
    if (targetReturn !== undefined && !Number.isFinite(targetReturn))
      throw new Error(`targetReturn is ${targetReturn}: expected a number`);
    this.check(this.call.overtone_begin(this.handle, BigInt(seed), targetReturn ?? NaN));
  }

  /** Allows only these discrete actions at the next step: true or false for each. */
  allow(flags) {
    const place = this.copy(Uint8Array.from(flags, Number));
    try {
      this.check(this.call.overtone_allow(this.handle, place, flags.length));
    } finally {
      this.call.overtone_release(place, flags.length);
    }
  }

  /** The action for an observation; `reward` is the reward of the last action. */
  act(observation, reward = 0) {
    if (observation.length !== this.size) throw new Error(`an observation has ${this.size} numbers`);
    new Float32Array(this.call.memory.buffer, this.observation, this.size).set(observation);
    this.check(this.call.overtone_act(
      this.handle, this.observation, this.size, reward, this.action, this.width));
    const action = new Float32Array(this.call.memory.buffer, this.action, this.width);
    return this.isDiscrete ? action[0] : action.slice();
  }

  copy(bytes) {
    const place = this.call.overtone_allocate(bytes.length);
    new Uint8Array(this.call.memory.buffer, place, bytes.length).set(bytes);
    return place;
  }

  check(code) {
    if (code === 0) return;
    const bytes = new Uint8Array(this.call.memory.buffer, this.call.overtone_last_error());
    throw new Error(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0))));
  }
}
