// Compiles WGSL kernels in headless Chromium, on its software adapter.
//
// Usage: node chromium.cjs CHROMIUM < kernels.json, with an array of { name, text, features }.
// Prints a line of JSON per kernel, { name, lacks, errors }: the features that the adapter lacks,
// and the errors, which are not determined if it lacks any. Needs the npm package playwright-core,
// found by NODE_PATH.

const { chromium } = require('playwright-core');
const { readFileSync } = require('fs');

const ARGUMENTS = ['--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];

// Runs in the page. Limits are the adapter's, because kernels may exceed WebGPU's defaults.
async function compileAll(kernels) {
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) throw new Error('there is no WebGPU adapter');
  const limits = {};
  for (const name in adapter.limits) limits[name] = adapter.limits[name];
  const device = await adapter.requestDevice({
    requiredFeatures: ['shader-f16', 'subgroups'].filter((name) => adapter.features.has(name)),
    requiredLimits: limits,
  });
  const results = [];
  for (const { name, text, features } of kernels) {
    const lacks = features.filter((feature) => !device.features.has(feature));
    if (lacks.length > 0) {
      results.push({ name, lacks, errors: [] });
      continue;
    }
    const errors = [];
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ code: text });
    const { messages } = await module.getCompilationInfo();
    for (const { type, message, lineNum } of messages) {
      if (type === 'error') errors.push(`line ${lineNum}: ${message}`);
    }
    if (errors.length === 0) {
      const descriptor = { layout: 'auto', compute: { module } };
      await device.createComputePipelineAsync(descriptor).catch((error) => errors.push(error.message));
    }
    await device.popErrorScope();
    results.push({ name, lacks, errors });
  }
  return results;
}

async function main() {
  const kernels = JSON.parse(readFileSync(0, 'utf8'));
  const browser = await chromium.launch({ executablePath: process.argv[2], args: ARGUMENTS });
  try {
    const page = await browser.newPage();
    // WebGPU needs a secure context, which about:blank is not.
    await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body: '' }));
    await page.goto('https://localhost/');
    for (const result of await page.evaluate(compileAll, kernels)) console.log(JSON.stringify(result));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
