// Example data: everyday sentences built from parts, English and Spanish side by side. Each frame crosses lists of parts and
// minds Spanish agreement: person, gender, number, a + el = al. Which combinations are learned and which are kept back is
// decided in corpus.mjs.

/** @typedef {import('./phrases.mjs').Pair} Pair */

/** Persons, in this order in every row of verb forms. Spanish leaves a pronoun out where the verb tells the person. */
const PERSONS = [
  { en: 'I', es: '', am: 'am', to: 'me' },
  { en: 'you', es: '', am: 'are', to: 'te' },
  { en: 'he', es: 'él', am: 'is', to: 'a él le' },
  { en: 'she', es: 'ella', am: 'is', to: 'a ella le' },
  { en: 'we', es: '', am: 'are', to: 'nos' },
  { en: 'they', es: 'ellos', am: 'are', to: 'a ellos les' },
];
const THIRD = [2, 3];
const isThird = (/** @type {number} */ person) => THIRD.includes(person);

const HAVE = ['tengo', 'tienes', 'tiene', 'tiene', 'tenemos', 'tienen'];
const WANT = ['quiero', 'quieres', 'quiere', 'quiere', 'queremos', 'quieren'];
const CAN = ['puedo', 'puedes', 'puede', 'puede', 'podemos', 'pueden'];
const GO = ['voy', 'vas', 'va', 'va', 'vamos', 'van'];

/** English plain form, its third person, Spanish forms. */
const VERBS = [
  { en: 'want', third: 'wants', es: WANT },
  { en: 'have', third: 'has', es: HAVE },
  {
    en: 'need',
    third: 'needs',
    es: ['necesito', 'necesitas', 'necesita', 'necesita', 'necesitamos', 'necesitan'],
  },
  { en: 'see', third: 'sees', es: ['veo', 'ves', 've', 've', 'vemos', 'ven'] },
  {
    en: 'buy',
    third: 'buys',
    es: ['compro', 'compras', 'compra', 'compra', 'compramos', 'compran'],
  },
];

/** Gender m or f; the plural in both languages. */
const THINGS = rows(`
book m libro libros books
car m coche coches cars
hat m sombrero sombreros hats
phone m teléfono teléfonos phones
coat m abrigo abrigos coats
clock m reloj relojes clocks
house f casa casas houses
table f mesa mesas tables
chair f silla sillas chairs
lamp f lámpara lámparas lamps
shirt f camisa camisas shirts
bicycle f bicicleta bicicletas bicycles
`);

/** English, Spanish masculine and feminine. */
const QUALITIES = /** @type {const} */ ([
  ['red', 'rojo', 'roja'],
  ['black', 'negro', 'negra'],
  ['white', 'blanco', 'blanca'],
  ['new', 'nuevo', 'nueva'],
  ['old', 'viejo', 'vieja'],
  ['small', 'pequeño', 'pequeña'],
  ['big', 'grande', 'grande'],
  ['cheap', 'barato', 'barata'],
]);

const PLACES = rows(`
bank m banco - -
market m mercado - -
museum m museo - -
park m parque - -
hospital m hospital - -
hotel m hotel - -
beach f playa - -
station f estación - -
school f escuela - -
library f biblioteca - -
pharmacy f farmacia - -
church f iglesia - -
`);

const ORDERS = rows(`
coffee m café cafés coffees
tea m té tés teas
juice m zumo zumos juices
sandwich m bocadillo bocadillos sandwiches
ice-cream m helado helados ice-creams
beer f cerveza cervezas beers
soup f sopa sopas soups
salad f ensalada ensaladas salads
apple f manzana manzanas apples
orange f naranja naranjas oranges
`);

const ANIMALS = rows(`
dog m perro - -
cat m gato - -
bird m pájaro - -
horse m caballo - -
cow f vaca - -
duck m pato - -
`);

const ROOMS = rows(`
garden m jardín - -
street f calle - -
kitchen f cocina - -
park m parque - -
house f casa - -
river m río - -
`);

const FAMILY = rows(`
mother f madre - -
father m padre - -
brother m hermano - -
sister f hermana - -
son m hijo - -
daughter f hija - -
grandmother f abuela - -
grandfather m abuelo - -
aunt f tía - -
uncle m tío - -
`);

const STATES = /** @type {const} */ ([
  ['tired', 'cansado', 'cansada'],
  ['sick', 'enfermo', 'enferma'],
  ['happy', 'contento', 'contenta'],
  ['sad', 'triste', 'triste'],
  ['busy', 'ocupado', 'ocupada'],
  ['angry', 'enfadado', 'enfadada'],
  ['alone', 'solo', 'sola'],
  ['at home', 'en casa', 'en casa'],
]);

/** What English is and Spanish has. */
const FEELINGS = /** @type {const} */ ([
  ['hungry', 'hambre'],
  ['thirsty', 'sed'],
  ['cold', 'frío'],
  ['hot', 'calor'],
  ['afraid', 'miedo'],
  ['sleepy', 'sueño'],
  ['lucky', 'suerte'],
  ['in a hurry', 'prisa'],
]);

const LIKED = /** @type {const} */ ([
  ['coffee', 'gusta', 'el café'],
  ['fish', 'gusta', 'el pescado'],
  ['chocolate', 'gusta', 'el chocolate'],
  ['football', 'gusta', 'el fútbol'],
  ['music', 'gusta', 'la música'],
  ['the beach', 'gusta', 'la playa'],
  ['the winter', 'gusta', 'el invierno'],
  ['dogs', 'gustan', 'los perros'],
  ['books', 'gustan', 'los libros'],
  ['apples', 'gustan', 'las manzanas'],
  ['flowers', 'gustan', 'las flores'],
]);

const ACTIONS = /** @type {const} */ ([
  ['sleep', 'dormir'],
  ['eat', 'comer'],
  ['work', 'trabajar'],
  ['read', 'leer'],
  ['write', 'escribir'],
  ['swim', 'nadar'],
  ['travel', 'viajar'],
  ['cook', 'cocinar'],
  ['dance', 'bailar'],
  ['sing', 'cantar'],
  ['learn Spanish', 'aprender español'],
  ['go home', 'ir a casa'],
]);

const TIMES = /** @type {const} */ ([
  ['', ''],
  ['today', 'hoy'],
  ['tomorrow', 'mañana'],
  ['now', 'ahora'],
  ['tonight', 'esta noche'],
]);

const NUMBERS = /** @type {const} */ ([
  ['two', 'dos'],
  ['three', 'tres'],
  ['four', 'cuatro'],
  ['five', 'cinco'],
  ['six', 'seis'],
  ['seven', 'siete'],
  ['eight', 'ocho'],
  ['nine', 'nueve'],
  ['ten', 'diez'],
  ['eleven', 'once'],
  ['twelve', 'doce'],
]);

const DAYS = /** @type {const} */ ([
  ['Monday', 'lunes'],
  ['Tuesday', 'martes'],
  ['Wednesday', 'miércoles'],
  ['Thursday', 'jueves'],
  ['Friday', 'viernes'],
  ['Saturday', 'sábado'],
  ['Sunday', 'domingo'],
]);

const HURTS = rows(`
head f cabeza - -
stomach m estómago - -
throat f garganta - -
back f espalda - -
leg f pierna - -
arm m brazo - -
hand f mano - -
foot m pie - -
`);

/** @typedef {{ en: string, f: boolean, es: string, many: string, enMany: string }} Noun */

/** @param {string} table @returns {Noun[]} */
function rows(table) {
  return table
    .trim()
    .split('\n')
    .map((row) => {
      const [en, gender, es, many, enMany] = row.split(' ');
      const spaced = (/** @type {string} */ word) => word.replace('-', ' ');
      return { en: spaced(en), f: gender === 'f', es, many, enMany: spaced(enMany) };
    });
}

const the = (/** @type {Noun} */ noun) => `${noun.f ? 'la' : 'el'} ${noun.es}`;
const one = (/** @type {Noun} */ noun) => `${noun.f ? 'una' : 'un'} ${noun.es}`;
const an = (/** @type {string} */ word) => `${/^[aeio]/.test(word) ? 'an' : 'a'} ${word}`;
const to = (/** @type {Noun} */ noun) => (noun.f ? `a la ${noun.es}` : `al ${noun.es}`);

/** Words to a sentence: empty parts left out, the first letter capital. @param {string[]} words */
export function sentence(...words) {
  const text = words.filter((word) => word !== '').join(' ');
  return text.replace(/\p{L}/u, (letter) => letter.toUpperCase());
}

/** @param {string} source @param {string} target @returns {Pair} */
const pair = (source, target) => ({ source: sentence(source), target: sentence(target) });
/** @param {string} source @param {string} target @returns {Pair} */
const question = (source, target) => pair(`${source}?`, `¿${sentence(target)}?`);

/** @template A, B, R @param {readonly A[]} a @param {readonly B[]} b @param {(a: A, b: B) => R | R[]} make @returns {R[]} */
const cross = (a, b, make) => a.flatMap((x) => b.flatMap((y) => make(x, y)));

const everyone = PERSONS.map((_, person) => person);
const spoken = (/** @type {number} */ person, /** @type {string[]} */ ...words) =>
  [PERSONS[person].es, ...words].filter((word) => word !== '').join(' ');

/** Every frame: all its sentences, and how many of them are learned and kept back. */
export const FRAMES = [
  {
    name: 'feelings',
    take: 90,
    pairs: cross(everyone, FEELINGS, (person, [en, es]) => [
      pair(`${PERSONS[person].en} ${PERSONS[person].am} ${en}`, spoken(person, HAVE[person], es)),
      pair(
        `${PERSONS[person].en} ${PERSONS[person].am} not ${en}`,
        spoken(person, 'no', HAVE[person], es),
      ),
    ]).concat(FEELINGS.map(([en, es]) => question(`are you ${en}`, `tienes ${es}`))),
  },
  {
    name: 'things wanted',
    take: 260,
    pairs: cross(everyone, VERBS, (person, verb) =>
      cross(THINGS, [['', '', ''], ...QUALITIES], (thing, [en, m, f]) =>
        pair(
          `${PERSONS[person].en} ${isThird(person) ? verb.third : verb.en} ${an(en ? `${en} ${thing.en}` : thing.en)}`,
          spoken(person, verb.es[person], one(thing), thing.f ? f : m),
        ),
      ),
    ),
  },
  {
    name: 'things of the family',
    take: 100,
    pairs: cross(FAMILY, VERBS, (member, verb) =>
      cross(THINGS, [['', '', ''], ...QUALITIES.slice(0, 3)], (thing, [en, m, f]) =>
        [
          ['my', 'mi'],
          ['your', 'tu'],
        ].map(([whose, suyo]) =>
          pair(
            `${whose} ${member.en} ${verb.third} ${an(en ? `${en} ${thing.en}` : thing.en)}`,
            [suyo, member.es, verb.es[2], one(thing), thing.f ? f : m].join(' ').trim(),
          ),
        ),
      ),
    ),
  },
  {
    name: 'things described',
    take: 110,
    pairs: cross(THINGS, QUALITIES, (thing, [en, m, f]) => [
      pair(`the ${thing.en} is ${en}`, `${the(thing)} es ${thing.f ? f : m}`),
      pair(
        `the ${thing.enMany} are ${en}`,
        `${thing.f ? 'las' : 'los'} ${thing.many} son ${thing.f ? f : m}s`,
      ),
    ]),
  },
  {
    name: 'places asked for',
    take: 24,
    pairs: PLACES.flatMap((place) => [
      question(`where is the ${place.en}`, `dónde está ${the(place)}`),
      question(`is the ${place.en} far`, `está lejos ${the(place)}`),
    ]),
    keepBack: 0,
  },
  {
    name: 'going',
    take: 150,
    pairs: cross(everyone, PLACES, (person, place) =>
      TIMES.map(([en, es]) =>
        pair(
          `${PERSONS[person].en} ${PERSONS[person].am} going to the ${place.en} ${en}`.trim(),
          spoken(person, GO[person], to(place), es),
        ),
      ),
    ),
  },
  {
    name: 'likes',
    take: 90,
    pairs: cross(PERSONS, LIKED, (person, [en, verb, es]) => {
      const third = person.am === 'is';
      return [
        pair(`${person.en} ${third ? 'likes' : 'like'} ${en}`, `${person.to} ${verb} ${es}`),
        pair(
          `${person.en} ${third ? 'does' : 'do'} not like ${en}`,
          `${person.to.replace(/\S+$/, 'no $&')} ${verb} ${es}`,
        ),
      ];
    }),
  },
  {
    name: 'family',
    take: 130,
    pairs: cross(FAMILY, STATES, (member, [en, m, f]) =>
      [
        ['my', 'mi', 'mi'],
        ['your', 'tu', 'tu'],
        ['our', 'nuestro', 'nuestra'],
      ].map(([whose, suyo, suya]) =>
        pair(
          `${whose} ${member.en} is ${en}`,
          `${member.f ? suya : suyo} ${member.es} está ${member.f ? f : m}`,
        ),
      ),
    ),
  },
  {
    name: 'animals',
    take: 50,
    pairs: cross(ANIMALS, ROOMS, (animal, room) => [
      pair(`there is a ${animal.en} in the ${room.en}`, `hay ${one(animal)} en ${the(room)}`),
      pair(`the ${animal.en} is in the ${room.en}`, `${the(animal)} está en ${the(room)}`),
    ]),
  },
  {
    name: 'orders',
    take: 60,
    pairs: ORDERS.flatMap((order) => [
      pair(`${an(order.en)}, please`, `${one(order)}, por favor`),
      pair(`I want ${an(order.en)}`, `quiero ${one(order)}`),
      ...NUMBERS.slice(0, 6).map(([en, es]) =>
        pair(`${en} ${order.enMany}, please`, `${es} ${order.many}, por favor`),
      ),
    ]),
  },
  {
    name: 'deeds',
    take: 170,
    pairs: cross(everyone, ACTIONS, (person, [en, es]) => {
      const { en: who, am } = PERSONS[person];
      const third = isThird(person);
      return TIMES.flatMap(([when, cuando]) => [
        pair(
          `${who} ${third ? 'wants' : 'want'} to ${en} ${when}`.trim(),
          spoken(person, WANT[person], es, cuando),
        ),
        pair(`${who} can ${en} ${when}`.trim(), spoken(person, CAN[person], es, cuando)),
        pair(`${who} cannot ${en} ${when}`.trim(), spoken(person, 'no', CAN[person], es, cuando)),
        pair(
          `${who} ${third ? 'has' : 'have'} to ${en} ${when}`.trim(),
          spoken(person, HAVE[person], 'que', es, cuando),
        ),
        pair(
          `${who} ${am} going to ${en} ${when}`.trim(),
          spoken(person, GO[person], 'a', es, cuando),
        ),
      ]);
    }),
  },
  {
    name: 'hours and days',
    take: 25,
    pairs: [
      ...NUMBERS.map(([en, es]) => pair(`it is ${en} o'clock`, `son las ${es}`)),
      ...DAYS.flatMap(([en, es]) => [
        pair(`today is ${en}`, `hoy es ${es}`),
        pair(`see you on ${en}`, `hasta el ${es}`),
      ]),
    ],
    keepBack: 0,
  },
  {
    name: 'where it hurts',
    take: 16,
    pairs: HURTS.flatMap((part) => [
      pair(`my ${part.en} hurts`, `me duele ${the(part)}`),
      question(`does your ${part.en} hurt`, `te duele ${the(part)}`),
    ]),
    keepBack: 0,
  },
];
