// Example data: phrases of every day that are learned whole, English and Spanish. Names are Spanish; "you" is the informal one.

/** One a line, the two languages with a bar between. */
const LINES = `
You are welcome | De nada
Hello | Hola
Good morning | Buenos días
Good afternoon | Buenas tardes
Good evening | Buenas noches
Good night | Buenas noches
Goodbye | Adiós
See you | Nos vemos
See you later | Hasta luego
See you tomorrow | Hasta mañana
See you soon | Hasta pronto
Thank you | Gracias
Thank you very much | Muchas gracias
Thank you for everything | Gracias por todo
Thank you for your help | Gracias por tu ayuda
Please | Por favor
Excuse me | Disculpe
I am sorry | Lo siento
I am very sorry | Lo siento mucho
It does not matter | No importa
No problem | No hay problema
Of course | Por supuesto
Yes | Sí
No | No
Maybe | Quizás
Maybe later | Quizás más tarde
How are you? | ¿Cómo estás?
I am fine, thank you | Estoy bien, gracias
And you? | ¿Y tú?
Very well | Muy bien
So so | Más o menos
What is your name? | ¿Cómo te llamas?
My name is Ana | Me llamo Ana
My name is Luis | Me llamo Luis
Nice to meet you | Mucho gusto
Where are you from? | ¿De dónde eres?
I am from Spain | Soy de España
I am from Mexico | Soy de México
How old are you? | ¿Cuántos años tienes?
I am ten years old | Tengo diez años
I am twelve years old | Tengo doce años
What time is it? | ¿Qué hora es?
It is one o'clock | Es la una
What day is it today? | ¿Qué día es hoy?
How much is it? | ¿Cuánto cuesta?
It is too expensive | Es demasiado caro
The bill, please | La cuenta, por favor
Enjoy your meal | Buen provecho
Cheers! | ¡Salud!
Congratulations! | ¡Felicidades!
Happy birthday! | ¡Feliz cumpleaños!
Merry Christmas! | ¡Feliz Navidad!
Happy new year! | ¡Feliz año nuevo!
Good luck! | ¡Buena suerte!
Have a good trip! | ¡Buen viaje!
Welcome! | ¡Bienvenidos!
Welcome to my house | Bienvenidos a mi casa
Come in | Adelante
Come here | Ven aquí
Sit down, please | Siéntate, por favor
Wait a moment | Espera un momento
Be careful | Ten cuidado
Hurry up | Date prisa
Let us go | Vamos
Let us eat | Vamos a comer
Let us dance | Vamos a bailar
Help! | ¡Socorro!
Help me, please | Ayúdame, por favor
I do not know | No lo sé
I do not understand | No entiendo
I do not remember | No me acuerdo
I understand | Entiendo
Do you understand? | ¿Entiendes?
Do you speak English? | ¿Hablas inglés?
Do you speak Spanish? | ¿Hablas español?
I speak a little Spanish | Hablo un poco de español
I do not speak English | No hablo inglés
Can you repeat that, please? | ¿Puedes repetirlo, por favor?
Can you help me? | ¿Puedes ayudarme?
Speak more slowly, please | Habla más despacio, por favor
What does this mean? | ¿Qué significa esto?
How do you say this in Spanish? | ¿Cómo se dice esto en español?
What is this? | ¿Qué es esto?
Who is it? | ¿Quién es?
What are you doing? | ¿Qué haces?
Where do you live? | ¿Dónde vives?
I live here | Vivo aquí
I live in Madrid | Vivo en Madrid
Where do you work? | ¿Dónde trabajas?
What do you want? | ¿Qué quieres?
Nothing | Nada
I am lost | Me he perdido
I love you | Te quiero
I love you very much | Te quiero mucho
I miss you | Te echo de menos
I agree | Estoy de acuerdo
It is true | Es verdad
It is not true | No es verdad
It is late | Es tarde
It is early | Es temprano
It is hot today | Hoy hace calor
It is cold today | Hoy hace frío
It is raining | Está lloviendo
It is snowing | Está nevando
It is sunny | Hace sol
It is windy | Hace viento
Is it far? | ¿Está lejos?
It is near | Está cerca
On the left | A la izquierda
On the right | A la derecha
Straight ahead | Todo recto
I do not feel well | No me siento bien
I feel better | Me siento mejor
Call a doctor | Llama a un médico
What happened? | ¿Qué pasó?
Do not worry | No te preocupes
I am coming | Ya voy
I am joking | Es broma
Really? | ¿De verdad?
Why? | ¿Por qué?
Why not? | ¿Por qué no?
Who? | ¿Quién?
When? | ¿Cuándo?
Where? | ¿Dónde?
How? | ¿Cómo?
How many? | ¿Cuántos?
What a pity! | ¡Qué lástima!
How nice! | ¡Qué bien!
How beautiful! | ¡Qué bonito!
Sweet dreams | Dulces sueños
Get well soon | Que te mejores
Good idea | Buena idea
Me too | Yo también
Me neither | Yo tampoco
Once more | Otra vez
Little by little | Poco a poco
Right now | Ahora mismo
Never | Nunca
Always | Siempre
Same to you | Igualmente
It is my fault | Es culpa mía
It is delicious | Está delicioso
I have no time | No tengo tiempo
I have no money | No tengo dinero
I need help | Necesito ayuda
Everything is fine | Todo está bien
The door is open | La puerta está abierta
The window is closed | La ventana está cerrada
`;

/** @typedef {{ source: string, target: string }} Pair English and Spanish */

/** @type {readonly Pair[]} */
export const PHRASES = LINES.trim()
  .split('\n')
  .map((line) => {
    const [source, target] = line.split(' | ');
    return { source, target };
  });
