// Writes the vectors that onnxruntime and transformers.js give for the models
// of TestGolden.
//
//	go test -run Golden -write /tmp/models .
//	npm install --ignore-scripts @huggingface/transformers@4.3.1
//	node golden.mjs /tmp/models
import {readFileSync, writeFileSync} from 'fs';
import {createRequire} from 'module';
const {pipeline, env} = createRequire(process.cwd() + '/')('@huggingface/transformers');
const here = new URL('.', import.meta.url).pathname;
const models = process.argv[2];
env.allowRemoteModels = false;
env.localModelPath = models;
const texts = JSON.parse(readFileSync(here + 'texts.json'));
const golden = {};
for (const [name, pooling] of Object.entries({wordpiece: 'mean', unigram: 'mean', cls: 'cls'})) {
  const embed = await pipeline('feature-extraction', name, {dtype: 'fp32'});
  golden[name] = [];
  for (const text of texts) golden[name].push({text, vector: [...(await embed(text, {pooling, normalize: true})).data].map(x => Number(x.toPrecision(8)))});
}
writeFileSync(here + 'golden.json', JSON.stringify(golden).replaceAll('{"text"', '\n{"text"') + '\n');
