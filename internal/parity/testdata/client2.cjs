// A client of @modelcontextprotocol/client: lists the tools and calls some.
//   node client2.cjs NODE_MODULES NEGOTIATION TARGET…   (a URL, or a command)
const {createRequire} = require('node:module');
const [modules, negotiation, ...target] = process.argv.slice(2);
const need = createRequire(modules + '/');
const {Client, StreamableHTTPClientTransport} = need('@modelcontextprotocol/client');
const {StdioClientTransport} = need('@modelcontextprotocol/client/stdio');
const transport = target[0].startsWith('http') ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({command: target[0], args: target.slice(1), stderr: 'ignore'});
(async () => {
  const client = new Client({name: 'parity', version: '1'}, negotiation ? {versionNegotiation: {mode: negotiation}} : {});
  await client.connect(transport);
  const said = {tools: (await client.listTools()).tools.map(t => t.name).sort()};
  said.text = await client.callTool({name: 'test_simple_text', arguments: {}});
  said.image = await client.callTool({name: 'test_image_content', arguments: {}});
  said.denied = await client.callTool({name: 'test_audio_content', arguments: {}}).catch(e => ({code: e.code, message: e.message}));
  console.log(JSON.stringify(said));
  await client.close();
})();
