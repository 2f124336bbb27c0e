// Times onnxruntime, on one thread, on an ONNX model with 12 heads.
//
//	npm install --ignore-scripts onnxruntime-node@1.20.1
//	node compare.mjs model.onnx 32
import {createRequire} from 'module';
const ort = createRequire(process.cwd() + '/')('onnxruntime-node');
const n = Number(process.argv[3]);
const session = await ort.InferenceSession.create(process.argv[2], {intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: 'sequential', graphOptimizationLevel: 'all'});
const ids = f => new ort.Tensor('int64', BigInt64Array.from({length: n}, (_, i) => BigInt(f(i))), [1, n]);
const feeds = {input_ids: ids(i => i % 70), attention_mask: ids(() => 1), token_type_ids: ids(() => 0)};
const times = [];
for (let i = 0; i < 120; i++) {
  const t = process.hrtime.bigint();
  await session.run(feeds);
  times.push(Number(process.hrtime.bigint() - t) / 1e6);
}
times.splice(0, 20);
times.sort((a, b) => a - b);
console.log(`${n} tokens: median ${times[50].toFixed(2)} ms, least ${times[0].toFixed(2)} ms`);
