// The openai client of npm, unmodified, against writ: prints what it got.
import OpenAI from 'openai'

const [url, key] = process.argv.slice(2)
const client = new OpenAI({ baseURL: url, apiKey: key })
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Say hello' }]
const out = { models: (await client.models.list()).data.map((m) => m.id), refusals: {} }

const whole = await client.chat.completions.create({ model: 'planner', messages, temperature: 0.2 })
out.completion = [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.usage.total_tokens > 0]

let text = ''
let finish = null
let usage = null
for await (const chunk of await client.chat.completions.create({ model: 'planner', messages, stream: true, stream_options: { include_usage: true } })) {
  text += chunk.choices[0]?.delta.content ?? ''
  finish = chunk.choices[0]?.finish_reason ?? finish
  usage = chunk.usage ?? usage
}
out.chunks = [text, finish, usage.total_tokens > 0]
out.helper = await client.chat.completions.stream({ model: 'planner', messages }).finalContent()

const response = await client.responses.create({ model: 'planner', input: 'Say hello' })
out.response = [response.output_text, response.status, response.usage.total_tokens > 0]
out.events = (await client.responses.stream({ model: 'planner', input: messages.slice(1) }).finalResponse()).output_text

for (const [name, kind, call] of [
  ['key', OpenAI.AuthenticationError, () => new OpenAI({ baseURL: url, apiKey: 'wrong' }).models.list()],
  ['model', OpenAI.NotFoundError, () => client.chat.completions.create({ model: 'gpt-4', messages })],
  ['tools', OpenAI.BadRequestError, () => client.chat.completions.create({ model: 'planner', messages, tools: [{ type: 'function', function: { name: 'f', parameters: {} } }], tool_choice: 'required' })],
]) {
  try {
    await call()
  } catch (e) {
    if (!(e instanceof kind)) throw e
    out.refusals[name] = [e.code, e.param]
  }
}
console.log(JSON.stringify(out))
