// Answers the calls of the compiler explorer: in a worker, or on the page itself.
import init, { explore } from "../pkg/explorer.js";
import { compiled } from "./module.js";

const ready = init({ module_or_path: compiled("explorer") });

// Returns the answer to a call.
export async function answer({ id, args }) {
  try {
    await ready;
    return { id, value: explore(...args) };
  } catch (error) {
    return { id, error: `the compiler failed: ${error?.message ?? error}; help: reload the page` };
  }
}
