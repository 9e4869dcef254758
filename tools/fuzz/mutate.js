const characters = '\0 \t\n"\\,./%=:@[]{}#?\ufeff\ud800é-_0';
const interesting = ['', ...characters, ...'.. // %2e %2F 1e400 -1 9007199254740993 null true [] {} none'.split(' ')];
const maxLength = 4096;

/**
 * Changes a string at one to four positions, with words of the target and with parts of another string of the corpus.
 */
export function mutate(text, { random, words, other }) {
  let changed = text;
  for (let times = 1 + random(4); times > 0; times--) changed = changeOnce(changed, { random, words, other });
  return changed.slice(0, maxLength);
}

function changeOnce(text, { random, words, other }) {
  const at = random(text.length + 1);
  const end = Math.min(text.length, at + 1 + random(8));
  const pick = (list) => list[random(list.length)];
  switch (random(9)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(random(256)) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + text.slice(end);
    case 2:
      return text.slice(0, at) + pick(interesting) + text.slice(at);
    case 3:
      return text.slice(0, at) + pick(words) + text.slice(random(2) === 0 ? at : end);
    case 4:
      return text.slice(0, end) + text.slice(at, end).repeat(1 + random(16)) + text.slice(end);
    case 5:
      return text.slice(0, at) + other.slice(random(other.length + 1));
    case 6: {
      const code = text.charCodeAt(at) || 0;
      return text.slice(0, at) + String.fromCharCode(code ^ (1 << random(8))) + text.slice(at + 1);
    }
    case 7:
      return text.slice(0, at) + other.slice(0, random(other.length + 1)) + text.slice(end);
    default:
      return text.slice(0, at) + pick(interesting) + text.slice(end);
  }
}
