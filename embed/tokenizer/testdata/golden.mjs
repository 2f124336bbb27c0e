// Writes the small tokenizers of this folder and the ids that the reference
// implementation gives for texts.json and for texts drawn from many scripts.
//
//	npm install --ignore-scripts tokenizers@0.23.2
//	node golden.mjs
import {createRequire} from 'module';
import {readFileSync, writeFileSync} from 'fs';
const {Tokenizer} = createRequire(process.cwd() + '/')('tokenizers');
const here = new URL('.', import.meta.url).pathname;
const texts = JSON.parse(readFileSync(here + 'texts.json'));

// A small generator, so that the files come out the same again.
let state = 12345;
const rand = n => (state = (Math.imul(state, 1103515245) + 12345) >>> 0, Math.floor(state / 65536) % n);

// Frequent substrings of the words of the texts.
function substrings(words, most) {
  const count = new Map();
  for (const w of words) {
    const c = [...w];
    for (let i = 0; i < c.length; i++)
      for (let j = i + 1; j <= Math.min(c.length, i + 6); j++) {
        const s = c.slice(i, j).join('');
        count.set(s, (count.get(s) || 0) + 1);
      }
  }
  return [...count].filter(([s, n]) => [...s].length === 1 || n > 1).sort((a, b) => b[1] * [...b[0]].length - a[1] * [...a[0]].length || (a[0] < b[0] ? -1 : 1)).slice(0, most);
}

// Every seventh text teaches nothing, so that there is something unknown.
const taught = texts.filter((_, i) => i % 7 != 3);

function wordPiece(fold, options) {
  const words = taught.flatMap(t => fold(t).split(/[\s\p{P}]+/u)).filter(Boolean);
  const vocab = {};
  const put = s => { if (!(s in vocab)) vocab[s] = Object.keys(vocab).length };
  ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...'!"#$%&\'()*+,-./:;<=>?@[]^_`{|}~。、「」！？'].forEach(put);
  for (const [s] of substrings(words, 1100)) { put(s); if (rand(4)) put('##' + s) }
  const added = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map(c => ({id: vocab[c], content: c, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true}));
  return {
    version: '1.0', truncation: null, padding: null, added_tokens: added,
    normalizer: {type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true},
    pre_tokenizer: {type: 'BertPreTokenizer'},
    post_processor: {type: 'TemplateProcessing',
      single: [{SpecialToken: {id: '[CLS]', type_id: 0}}, {Sequence: {id: 'A', type_id: 0}}, {SpecialToken: {id: '[SEP]', type_id: 0}}],
      pair: [{Sequence: {id: 'A', type_id: 0}}, {Sequence: {id: 'B', type_id: 1}}],
      special_tokens: {'[CLS]': {id: '[CLS]', ids: [2], tokens: ['[CLS]']}, '[SEP]': {id: '[SEP]', ids: [3], tokens: ['[SEP]']}}},
    decoder: null,
    model: {type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab},
    ...options,
  };
}

function unigram(fold, options, model = {}) {
  const words = taught.flatMap(t => fold(t).split(/\s+/)).filter(Boolean).map(w => '▁' + w);
  const found = substrings(words, 1500);
  const total = found.reduce((n, [, c]) => n + c, 0);
  const vocab = [['<s>', 0], ['<pad>', 0], ['</s>', 0], ['<unk>', 0], ...(model.byte_fallback ? Array.from({length: 256}, (_, b) => [`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`, 0]) : []),
    ...found.map(([s, n]) => [s, Number(Math.log(n / total).toFixed(4))])];
  if (!vocab.some(([s]) => s === '▁')) vocab.push(['▁', -4]);
  vocab.push(['<mask>', 0]);
  const token = (content, more = {}) => ({id: vocab.findIndex(([s]) => s === content), content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more});
  return {
    version: '1.0', truncation: null, padding: null,
    added_tokens: [token('<s>'), token('<pad>'), token('</s>'), token('<unk>'), token('<mask>', {lstrip: true})],
    normalizer: {type: 'Precompiled', precompiled_charsmap: charsMap()},
    pre_tokenizer: {type: 'Sequence', pretokenizers: [{type: 'WhitespaceSplit'}, {type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true}]},
    post_processor: {type: 'TemplateProcessing',
      single: [{SpecialToken: {id: '<s>', type_id: 0}}, {Sequence: {id: 'A', type_id: 0}}, {SpecialToken: {id: '</s>', type_id: 0}}],
      pair: [{Sequence: {id: 'A', type_id: 0}}, {Sequence: {id: 'B', type_id: 0}}],
      special_tokens: {'<s>': {id: '<s>', ids: [0], tokens: ['<s>']}, '</s>': {id: '</s>', ids: [2], tokens: ['</s>']}}},
    decoder: null,
    model: {type: 'Unigram', unk_id: 3, vocab, ...model},
    ...options,
  };
}

// A compiled map as SentencePiece writes it, of what NFKC and its cleaning do
// to some blocks: a double array and the replacements.
function charsMap() {
  const map = new Map();
  const block = (from, to) => { for (let c = from; c <= to; c++) { const s = String.fromCodePoint(c); const n = s.normalize('NFKC'); if (n !== s && n.length) map.set(s, n) } };
  block(0xA0, 0x17F); block(0x2000, 0x206F); block(0x2070, 0x209F); block(0x2100, 0x214F); block(0x3000, 0x3000); block(0x3300, 0x33FF);
  block(0xFB00, 0xFB06); block(0xFF01, 0xFFEF); block(0x1D400, 0x1D433);
  for (const base of 'aeiounAEIOUcsgy') for (const mark of '\u0300\u0301\u0302\u0303\u0308\u030a\u0327\u030c') { const n = (base + mark).normalize('NFC'); if ([...n].length === 1) map.set(base + mark, n) }
  for (const k of 'かきくけこさしすせそたちつてとはひふへほカキクケコ') map.set(k + '\u3099', (k + '\u3099').normalize('NFC'));
  for (const c of '\u200b\u200e\u200f\ufeff\u00ad\u0001\u0007\u001f') map.set(c, '');
  for (const c of '\t\n\r\u00a0\u1680\u2009\u2028\u2029\u3000\u0085') map.set(c, ' ');
  map.set('\u{1f1eb}', 'F'); map.set('Đ', 'DJ'); map.set('ﷺ', 'صلى الله عليه وسلم');
  return compile(map);
}

function compile(map) {
  let texts = Buffer.alloc(0);
  const root = {kids: new Map()};
  for (const [from, to] of [...map].sort()) {
    let node = root;
    for (const b of Buffer.from(from)) { if (!node.kids.has(b)) node.kids.set(b, {kids: new Map()}); node = node.kids.get(b) }
    node.value = texts.length;
    texts = Buffer.concat([texts, Buffer.from(to), Buffer.from([0])]);
  }
  const units = [], used = new Set([0]);
  let tried = 1;
  const place = (node, pos) => {
    const labels = [...node.kids.keys(), ...(node.value !== undefined ? [0] : [])];
    if (!labels.length) return;
    let base = tried;
    while (labels.some(l => used.has(base ^ l)) || used.has('b' + base)) base++;
    used.add('b' + base);
    if (base > tried + 512) tried = base - 256;
    labels.forEach(l => used.add(base ^ l));
    units[pos] = ((units[pos] || 0) | (pos ^ base) << 10 | (node.value !== undefined ? 256 : 0)) >>> 0;
    if (node.value !== undefined) units[base] = (node.value | 1 << 31) >>> 0;
    for (const l of node.kids.keys()) units[base ^ l] = l;
    for (const [l, kid] of node.kids) place(kid, base ^ l);
  };
  place(root, 0);
  while (units.length % 256) units.push(0);
  const out = Buffer.alloc(4 + 4 * units.length);
  out.writeUInt32LE(4 * units.length);
  for (let i = 0; i < units.length; i++) out.writeUInt32LE((units[i] || 0) >>> 0, 4 + 4 * i);
  return Buffer.concat([out, texts]).toString('base64');
}

// Texts of characters side by side that no language puts there.
const blocks = [[0x20, 0x7E], [0xA0, 0xFF], [0x100, 0x17F], [0x300, 0x36F], [0x370, 0x3FF], [0x400, 0x45F], [0x5B0, 0x5EA], [0x610, 0x669], [0x900, 0x94D], [0xE01, 0xE4E],
  [0x1100, 0x11F9], [0x2000, 0x206F], [0x2100, 0x214F], [0x3000, 0x30FF], [0x3300, 0x33FF], [0x4E00, 0x4E80], [0xAC00, 0xAC80], [0xFB00, 0xFB06], [0xFE00, 0xFE0F], [0xFF00, 0xFFEF],
  [0x1D400, 0x1D433], [0x1F1E6, 0x1F1FF], [0x1F3FB, 0x1F3FF], [0x1F600, 0x1F64F], [0x20000, 0x20020], [0x00, 0x1F], [0x200B, 0x200F], [0xE000, 0xE003]];
const drawn = Array.from({length: 250}, () => Array.from({length: 1 + rand(14)}, () => {
  if (rand(4) === 0) { const w = texts[rand(texts.length)].split(' '); return w[rand(w.length)] + ' ' }
  const [a, b] = blocks[rand(blocks.length)];
  return String.fromCodePoint(a + rand(b - a + 1));
}).join('')).filter(t => t.isWellFormed());

const plain = t => t, folded = t => t.toLowerCase().normalize('NFD').replace(/\p{Mn}/gu, '');
const tokenizers = {
  'bert-uncased': wordPiece(folded, {}),
  'bert-cased': wordPiece(plain, {
    truncation: {direction: 'Right', max_length: 12, strategy: 'LongestFirst', stride: 0},
    normalizer: {type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: false, lowercase: false},
    post_processor: {type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2]}}),
  'xlm-r': unigram(t => t.normalize('NFKC'), {}),
  'xlm-r-newer': unigram(t => t.normalize('NFKC'), {
    normalizer: {type: 'Sequence', normalizers: [{type: 'Precompiled', precompiled_charsmap: charsMap()}, {type: 'Strip', strip_left: false, strip_right: true}, {type: 'Replace', pattern: {Regex: ' {2,}'}, content: '▁'}]},
    pre_tokenizer: {type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true}}),
  'bytes': unigram(t => t.normalize('NFKC').toLowerCase(), {
    normalizer: {type: 'Sequence', normalizers: [{type: 'NFKC'}, {type: 'Lowercase'}, {type: 'Replace', pattern: {String: '...'}, content: '…'}]},
    pre_tokenizer: {type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: false}}, {byte_fallback: true}),
  'mixed': wordPiece(folded, {
    normalizer: {type: 'Sequence', normalizers: [{type: 'NFD'}, {type: 'StripAccents'}, {type: 'Lowercase'}]},
    pre_tokenizer: {type: 'Whitespace'}, post_processor: null,
    added_tokens: [{id: 1, content: '[UNK]', single_word: false, lstrip: false, rstrip: false, normalized: false, special: true},
      {id: null, content: 'Über', single_word: true, lstrip: false, rstrip: true, normalized: true, special: false},
      {id: null, content: 'e', single_word: true, lstrip: true, rstrip: false, normalized: false, special: false}]}),
};

const mixed = tokenizers.mixed;
mixed.added_tokens[1].id = Object.keys(mixed.model.vocab).length;
mixed.added_tokens[2].id = mixed.model.vocab.e;

const golden = {};
for (const [name, t] of Object.entries(tokenizers)) {
  const text = JSON.stringify(t);
  writeFileSync(here + name + '.json', text + '\n');
  const reference = Tokenizer.fromString(text);
  golden[name] = [];
  for (const s of [...texts, ...drawn]) golden[name].push({text: s, ids: (await reference.encode(s)).getIds(), types: undefined});
}
writeFileSync(here + 'golden.json', '{\n' + Object.entries(golden).map(([n, l]) => JSON.stringify(n) + ': [\n' + l.map(x => JSON.stringify(x)).join(',\n') + '\n]').join(',\n') + '\n}\n');
