// The worker of a page: loads the host named in its URL, and answers calls in order.
import { compiled, findGpu } from "./module.js";

const host = new URL(self.location).searchParams.get("host");
const isExplorer = host === "explorer-host";
compiled(isExplorer ? "explorer" : "engine").catch(() => null);
if (!isExplorer) findGpu();
const loaded = import(isExplorer ? "./explorer-host.js" : "./host.js");

self.onmessage = async ({ data }) => {
  const { answer } = await loaded.catch((error) => ({
    answer: ({ id }) => ({ id, error: `the engine could not be loaded: ${error.message}` }),
  }));
  const message = await answer(data);
  const { value } = message;
  self.postMessage(message, value instanceof Uint8Array ? [value.buffer] : []);
};
