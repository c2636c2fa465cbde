"""The openai client and openai-agents, unmodified, against writ: prints what they got."""

import asyncio
import json
import sys

import agents
import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key=key)
ask = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello"}]
out = {"models": [m.id for m in client.models.list()]}

whole = client.chat.completions.create(model="planner", messages=ask, temperature=0.2)
out["completion"] = [whole.choices[0].message.content, whole.choices[0].finish_reason, whole.usage.total_tokens > 0]

text, finish, usage = "", None, None
for chunk in client.chat.completions.create(model="planner", messages=ask, stream=True, stream_options={"include_usage": True}):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    usage = chunk.usage or usage
out["chunks"] = [text, finish, usage.total_tokens > 0]

with client.chat.completions.stream(model="planner", messages=ask) as stream:
    out["helper"] = stream.get_final_completion().choices[0].message.content

response = client.responses.create(model="planner", input="Say hello")
out["response"] = [response.output_text, response.status, response.usage.total_tokens > 0]
with client.responses.stream(model="planner", input=ask[1:]) as stream:
    out["events"] = stream.get_final_response().output_text

out["refusals"] = {}
for name, error, call in [
    ("key", openai.AuthenticationError, lambda: openai.OpenAI(base_url=url, api_key="wrong").models.list()),
    ("model", openai.NotFoundError, lambda: client.chat.completions.create(model="gpt-4", messages=ask)),
    ("tools", openai.BadRequestError, lambda: client.chat.completions.create(
        model="planner", messages=ask, tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}], tool_choice="required")),
]:
    try:
        call()
    except error as e:
        out["refusals"][name] = [e.code, e.param]


async def run():
    agents.set_tracing_disabled(True)
    one = openai.AsyncOpenAI(base_url=url, api_key=key)
    for name, kind in [("agents_responses", agents.OpenAIResponsesModel), ("agents_completions", agents.OpenAIChatCompletionsModel)]:
        agent = agents.Agent(name="Front", instructions="Be brief.", model=kind(model="planner", openai_client=one))
        out[name] = (await agents.Runner.run(agent, "Say hello")).final_output
        streamed = agents.Runner.run_streamed(agent, "Say hello")
        async for _ in streamed.stream_events():
            pass
        out[name + "_streamed"] = streamed.final_output


asyncio.run(run())
print(json.dumps(out))
