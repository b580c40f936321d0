// Example data: short tales made by a grammar: a hero, a friend, a place, a thing lost and found. Whoever is named in the first
// sentence is meant in the last: what a model with a long memory can know and five letters of context cannot.
import { uniformGenerator } from '../random.mjs';

const HEROES = [
  ['fox', 'he'],
  ['hare', 'she'],
  ['badger', 'he'],
  ['heron', 'she'],
  ['hedgehog', 'he'],
  ['miller', 'he'],
  ['weaver', 'she'],
  ['fisherman', 'he'],
  ['gardener', 'she'],
  ['old king', 'he'],
  ['young queen', 'she'],
  ['donkey', 'he'],
];
const FRIENDS = ['crow', 'mouse', 'frog', 'owl', 'otter', 'shepherd', 'piper', 'tailor', 'snail'];
const PLACES = [
  'by the river',
  'at the edge of the wood',
  'under the old bridge',
  'on a hill above the town',
  'near the harbour',
  'behind the mill',
  'in a valley without a name',
];
const TIMES = [
  'one morning',
  'one evening',
  'late in the autumn',
  'on a day in spring',
  'before the sun was up',
  'when the snow had gone',
];
const THINGS = [
  'silver key',
  'bell',
  'blue lantern',
  'wooden spoon',
  'golden button',
  'apple',
  'letter',
  'loaf of bread',
  'old drum',
];
const WEATHER = [
  'The wind was cold and the path was long.',
  'Rain was falling on the leaves.',
  'The sky was clear and full of birds.',
  'A thin fog lay over the fields.',
  'It was so quiet that one could hear the grass grow.',
  'The sun was warm on the stones.',
];

/** @typedef {{ hero: string, he: string, friend: string, place: string, time: string, thing: string, weather: string }} Cast */

const an = (/** @type {string} */ noun) => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
const capital = (/** @type {string} */ text) => text[0].toUpperCase() + text.slice(1);
const him = (/** @type {string} */ he) => (he === 'he' ? 'him' : 'her');
const his = (/** @type {string} */ he) => (he === 'he' ? 'his' : 'her');

/** @type {((c: Cast) => string)[]} */
const OPENINGS = [
  (c) => `Once there was ${an(c.hero)} who lived ${c.place}.`,
  (c) => `${capital(c.place)} there lived ${an(c.hero)}, and ${c.he} had ${an(c.thing)}.`,
  (c) => `${capital(c.time)} the ${c.hero} was walking ${c.place}.`,
  (c) => `${capital(c.time)} ${an(c.hero)} came to the house of ${an(c.friend)} ${c.place}.`,
  (c) => `Everybody knows the ${c.hero}, but few know what happened ${c.place}.`,
  (c) => `Nobody ${c.place} was as patient as the ${c.hero}.`,
  (c) => `The ${c.hero} had lost ${his(c.he)} ${c.thing}, and ${c.he} was sad.`,
];
/** @type {((c: Cast) => string)[]} */
const EVENTS = [
  (c) => `${capital(c.time)} ${c.he} met ${an(c.friend)} who was looking for ${an(c.thing)}.`,
  (c) => `There ${c.he} found ${an(c.thing)}, and beside it sat ${an(c.friend)}.`,
  (c) =>
    `${capital(c.he)} put the ${c.thing} into ${his(c.he)} pocket and went to see the ${c.friend}.`,
  (c) =>
    `${capital(an(c.friend))} came along the path and looked at the ${c.thing} for a long time.`,
  (c) => `${capital(c.he)} gave the ${c.friend} the ${c.thing}, for ${c.he} had no use for it.`,
  (c) => `In the night ${c.he} heard the ${c.friend} singing about ${an(c.thing)}.`,
  (c) => `Then ${c.he} saw the ${c.friend}, who was carrying ${an(c.thing)} and looked tired.`,
  (c) => `But the ${c.thing} was gone, and only the ${c.friend} knew where it was.`,
];
/** @type {((c: Cast) => string)[]} */
const SPEECHES = [
  (c) => `"Good day," said the ${c.friend}. "Is that your ${c.thing}?"`,
  (c) => `"I will give you my ${c.thing}," said the ${c.hero}, "if you tell me a story."`,
  (c) => `"What is it for?" asked the ${c.friend}. "I do not know," said the ${c.hero}.`,
  (c) => `"Who are you?" asked the ${c.friend}. "I am only ${an(c.hero)}," ${c.he} said.`,
  (c) => `"Come with me," said the ${c.friend}, and the ${c.hero} went with the ${c.friend}.`,
  (c) => `"Do not be afraid," said the ${c.friend} to the ${c.hero}.`,
];
/** @type {((c: Cast) => string)[]} */
const ENDINGS = [
  (c) => `So the ${c.hero} and the ${c.friend} sat down together and shared what they had.`,
  (c) => `Since that day the ${c.thing} has hung above the door of the ${c.hero}.`,
  (c) => `The ${c.friend} laughed, and the ${c.hero} laughed too, and they went home.`,
  (c) => `And if ${c.he} has not lost it again, the ${c.hero} still has the ${c.thing} today.`,
  (c) => `The ${c.friend} thanked ${him(c.he)}, and the ${c.hero} slept well that night.`,
  (c) => `The ${c.hero} kept the ${c.thing}, and the ${c.friend} kept the story.`,
  (c) => `They shook hands, and the ${c.hero} walked on alone.`,
  (c) => `Then ${c.he} went home, ate some soup and forgot about the ${c.thing}.`,
  (c) => `That is all that the ${c.friend} ever told about the ${c.hero}.`,
];

/**
 * So many tales, each of four to six sentences.
 * @param {number} count
 * @param {number} seed
 * @returns {string[]}
 */
export function tales(count, seed) {
  const uniform = uniformGenerator(seed);
  /** @template T @param {readonly T[]} list @returns {T} */
  const pick = (list) => list[Math.floor(uniform() * list.length)];
  return Array.from({ length: count }, () => {
    const [hero, he] = pick(HEROES);
    const thing = pick(THINGS);
    const cast = {
      hero,
      he,
      friend: pick(FRIENDS),
      place: pick(PLACES),
      time: pick(TIMES),
      thing,
      weather: pick(WEATHER),
    };
    const sentences = [pick(OPENINGS)(cast)];
    if (uniform() < 0.5) sentences.push(cast.weather);
    sentences.push(pick(EVENTS)(cast), pick(SPEECHES)(cast));
    if (uniform() < 0.4) sentences.push(pick(SPEECHES)(cast));
    sentences.push(pick(ENDINGS)(cast));
    // Nobody says the same thing twice.
    return [...new Set(sentences)].join(' ');
  });
}
