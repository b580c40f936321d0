// Example data: couplets and sayings, written for this corpus, that stand between its tales.

export const RHYMES = `
The rain came down, the rain went by, and left a rainbow in the sky.
A little mouse in a little house drank little tea with a little mouse.
The clock struck one, the day was done, and off to bed went everyone.
The wind blew cold, the wind blew warm, the wind blew gently after the storm.
Row to the island, row to the shore, row till the water can hold you no more.
One for the fiddle and two for the drum, and three for the friends who are yet to come.
The moon is a lamp and the lamp is a moon, and both will be shining for somebody soon.
A penny for bread and a penny for tea, and nothing at all for the wind from the sea.
Up goes the bucket and down goes the well, and what the well knows it will never tell.
The snow fell softly, the snow fell deep, and all of the valley fell softly asleep.
Bake me a bread that is brown and round, and I will bring you the butter I found.
A frog on a log in the middle of the fog was singing a song to a very small dog.
The goose was loose and the gate was wide, and nobody asked who had gone outside.
Summer is green and winter is white, and spring is the morning that follows the night.
If the kettle is singing and the cat is near, then somebody gentle is sitting here.
Tell me a story and I will tell you, and one will be funny and one will be true.
The owl in the barn said who and who, and the barn said nothing but knew and knew.
A boat made of paper, a sail made of thread, went over the puddle and came home to bed.
Old is the mountain and young is the stream, and between the two there is room for a dream.
The tailor was singing, the thimble was bright, the coat had a pocket for keeping the light.
Ten little candles were burning in rows, and where the light goes to, nobody knows.
Under the apple tree, under the pear, under the plum tree, I found no one there.
The road to the town is the road to the hill, and he who walks slowly is walking there still.
A bell in the morning, a bell in the night, a bell in the fog when there is no light.
The baker was early, the milkman was late, the postman fell asleep by the gate.
Wood for the winter and water for May, and one good word for every day.
`
  .trim()
  .split('\n');
