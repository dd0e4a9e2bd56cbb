// A client of @modelcontextprotocol/sdk: lists the tools and calls some.
//   node sdk1.cjs NODE_MODULES "" TARGET…   (a URL, or a command)
const {createRequire} = require('node:module');
const [modules, , ...target] = process.argv.slice(2);
const need = createRequire(modules + '/');
const {Client} = need('@modelcontextprotocol/sdk/client/index.js');
const {StdioClientTransport} = need('@modelcontextprotocol/sdk/client/stdio.js');
const {StreamableHTTPClientTransport} = need('@modelcontextprotocol/sdk/client/streamableHttp.js');
const transport = target[0].startsWith('http') ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({command: target[0], args: target.slice(1), stderr: 'ignore'});
(async () => {
  const client = new Client({name: 'parity', version: '1'});
  await client.connect(transport);
  const said = {tools: (await client.listTools()).tools.map(t => t.name).sort()};
  said.text = await client.callTool({name: 'test_simple_text', arguments: {}});
  said.image = await client.callTool({name: 'test_image_content', arguments: {}});
  said.denied = await client.callTool({name: 'test_audio_content', arguments: {}}).catch(e => ({code: e.code, message: e.message}));
  console.log(JSON.stringify(said));
  await client.close();
})();
