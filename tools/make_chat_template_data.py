#!/usr/bin/env python3
"""Writes test/data/chat_template/cases.json: chat templates, conversations, and what jinja2 makes of them.

Usage: make_chat_template_data.py [--gguf MODEL.gguf] --out test/data/chat_template/cases.json
Needs: pip install jinja2 (and gguf for the model's own template; without it, the stored copy below is used)

jinja2 is set up as the transformers library does it: a sandbox with trim_blocks, lstrip_blocks, loop controls,
raise_exception and a tojson that keeps Unicode. Cases that fail there are stored with "error".
"""

import argparse
import json

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a "
    "helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CHATML = """{% for message in messages %}
{{ '<|im_start|>' ~ message.role ~ '\\n' ~ message.content | trim ~ '<|im_end|>' }}
{% endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""
LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message, if there is one. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
    {%- else %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN2 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each call: {\\"name\\": <function-name>}<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA2 = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""
THINKING = """{%- set ns = namespace(last_user=-1, seen=0) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.last_user == -1 and message.role == "user" and message.content is string and not message.content.startswith('<tool>') %}
        {%- set ns.last_user = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages if message.role != 'skip' %}
    {%- if message.role == 'stop' %}{% break %}{% endif %}
    {%- if message.role == 'next' %}{% continue %}{% endif %}
    {%- set content = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' in message.content else message.content %}
    {{- loop.index ~ '/' ~ loop.length ~ ':' ~ message.role | upper }}={{ content | trim }};
    {%- set ns.seen = ns.seen + 1 %}
{%- else %}
empty
{%- endfor %}
[{{ ns.last_user }} {{ ns.seen }}]
"""
# One expression or statement each, for what the templates above do not reach.
SMALL = [
    "{{ 1 + 2 * 3 - 4 // 3 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ - 3 + 1 }}",
    "{{ 'a' ~ 1 ~ true ~ none }} {{ 'x' 'y' }} {{ \"it's\\t\\x41\\u00e9\\q\" }}",
    "{{ 1 < 2 }} {{ 2 <= 2 }} {{ 'b' > 'a' }} {{ 'b' >= 'c' }} {{ 1 == true }} {{ [1, 'a'] == [1, 'a'] }}",
    "{{ 'a' in 'cat' }} {{ 'x' not in ['x'] }} {{ 'k' in {'k': 1} }} {{ not true or false and true }}",
    "{{ 'yes' if messages else 'no' }} {{ 'x' if false }}|{{ missing }}|{{ missing | default('d') }} {{ '' | d('e', true) }}",
    "{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages[99] is defined }} {{ messages[0].nope is undefined }}",
    "{{ 'héllo😀'[1] }} {{ 'héllo😀'[::-1] }} {{ 'héllo'[1:-1] }} {{ 'abc'[5:] }} {{ 'abcdef'[::2] }} {{ 'abc'[-2:] }} {{ 'abc'[:none] }}",
    "{{ [1,2,3] | length }} {{ 'é😀' | count }} {{ {'a': 1} | length }} {{ missing | length }} {{ [1,2,3]|first }} {{ [1,2,3]|last }}",
    "{{ ['a', 'b', 1] | join(', ') }} {{ 'a-b-c' | replace('-', '+') }} {{ 'aBc' | upper }} {{ 'aBc' | lower }} {{ 'aBC d' | capitalize }}",
    "{{ {'b': [1, true, none, 'x\"\\n\\u0001é'], 'a': {}} | tojson }} {{ [] | tojson(indent=2) }}",
    "{{ {'b': [1, {'c': 'd'}], 'a': []} | tojson(indent=2) }}",
    "{{ ' \\u00a0\\u2003x y\\u3000\\n' | trim }}| {{ 'xxaxx'.strip('x') }} {{ 'éaé'.lstrip('é') }} {{ 'abab'.rstrip('ab') }}|",
    "{{ 'a,b,,c'.split(',') | tojson }} {{ ' a  b '.split() | tojson }} {{ 'a,b,c'.split(',', 1) | tojson }} {{ ' a b  c '.split(none, 1) | tojson }}",
    "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('z', 5) }} {{ {'a': 1}.get('z') }}",
    "{% for c in 'añ' %}{{ c }}.{% endfor %}{% for k in {'x': 1} %}{{ k }}{% endfor %}{% for x in missing %}no{% else %}none{% endfor %}",
    "{% for i in range(3) %}{{ i }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }} {% endfor %}{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}",
    "{% for i in [1,2] %}{% for j in [3,4] %}{{ i }}{{ j }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in [1,2,3] %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0, s='') %}{% for i in [1,2,3] %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }}{{ ns.s }}",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%+ if true %}\n  b\n  {%+ endif +%}\nc\n\n",
    "  {# gone #}\nx {# here #} y\n  {#- both -#}  z",
    "x   {{- ' a ' -}}   y\n {{ 'b' }}\n{{ 'c' }}\n",
    "line\r\nnext\rlast\r\n",
    "  {% set a = 1 %}  {% set b = 2 %}\n{{ a }}{{ b }}",
    "{% if false %}1{% elif 0 %}2{% elif 'x' %}3{% else %}4{% endif %}{% if none %}{% else %}5{% endif %}",
    "{% for i in [1,2,3,4,5] if i != 2 %}{% if i == 4 %}{% break %}{% endif %}{% if i == 3 %}{% continue %}{% endif %}{{ i }}:{{ loop.index }}/{{ loop.length }} {% endfor %}",
    "{{ {'a': {'b': [10, 20]}}.a.b[1] }} {{ {'x': 1}['x'] }} {{ ('a' + 'b') * 1 if false else 'c' }}",
    "{{ 1 is number }} {{ 'a' is string }} {{ none is none }} {{ true is boolean }} {{ {} is mapping }} {{ [] is iterable }} {{ 'a' is sequence }} {{ 1 is integer }} {{ true is true }} {{ 1 is not false }}",
    "{{ {'a': 1, 'b': 2}.keys() | list | tojson }} {{ {'a': 1, 'a': 2} | tojson }} {{ 'ab' | list | tojson }} {{ 5 | string + '!' }}",
    "{{ raise_exception('stop: ' ~ messages[0].role) }}",
    "{{ missing.attribute }}",
    "{{ 'a' + 1 }}",
    "{{ 1 // 0 }}",
    "{{ [1][0:1:0] }}",
    "{{ 1 in 2 }}",
    "{% for a, b in [1] %}{% endfor %}",
    "{% for a in 5 %}{% endfor %}",
]
ALPHABET_TURNS = [
    [("user", "Hello!")],
    [("system", "  Be brief.\n"), ("user", " What is 2+2? "), ("assistant", "4"), ("user", "Sure?\n\n")],
    [("user", "naïve 😀 {{ not a tag }} {% if %}"), ("assistant", "<think>\nhm\n</think>\n\nYes."), ("user", "<tool>x"), ("tool", "t1"), ("tool", "t2")],
    [("assistant", "I begin"), ("skip", "s"), ("next", "n"), ("user", ""), ("stop", "x"), ("user", "after")],
]


def environment():
    def raise_exception(message):
        raise TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", help="check that the model's template is the copy above")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    if options.gguf:
        import gguf

        own = gguf.GGUFReader(options.gguf).fields["tokenizer.chat_template"].contents()
        assert own == SMOLLM2, own
    jinja = environment()
    cases = []

    def add(name, source, turns, prompt):
        messages = [{"role": role, "content": content} for role, content in turns]
        case = {"name": name, "template": source, "messages": messages, "add_generation_prompt": prompt}
        try:
            case["output"] = jinja.from_string(source).render(
                messages=messages, add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>")
        except Exception as error:  # what a template may do wrong is many things: the test asks only that we fail too
            case["error"] = f"{type(error).__name__}: {error}"
        cases.append(case)

    large = {"smollm2": SMOLLM2, "chatml": CHATML, "llama3": LLAMA3, "qwen2": QWEN2, "llama2": LLAMA2, "thinking": THINKING}
    for name, source in large.items():
        for number, turns in enumerate(ALPHABET_TURNS):
            for prompt in (True, False):
                add(f"{name}/{number}/{'prompt' if prompt else 'plain'}", source, turns, prompt)
    add("thinking/none", THINKING, [], True)
    for number, source in enumerate(SMALL):
        add(f"small/{number}", source, ALPHABET_TURNS[0], True)
    with open(options.out, "w", encoding="utf-8", newline="\n") as out:
        json.dump(cases, out, ensure_ascii=False, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
