// npm run bench -- tables: writes every table and the picture from what earlier runs have kept.
import { writePages } from './publish.js';

export async function bench() {
  writePages();
}
