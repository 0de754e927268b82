// A small processor: eight bits, an accumulator, four words of memory, and a program of 24 instructions in
// its ROM that finds the primes by trial division and puts each on the output, with `valid` for one cycle.
// An instruction takes one cycle.
module processor(input clk, input rst, output reg [7:0] out, output reg valid);
  localparam LDI = 3'd0, LDA = 3'd1, STA = 3'd2, ADD = 3'd3, SUB = 3'd4, JB = 3'd5, JZ = 3'd6, JMP = 3'd7;
  localparam PUT = 5'd31;  // a jump to the last address is no jump: it puts the accumulator out
  localparam N = 5'd0, D = 5'd1, ONE = 5'd2;

  reg [4:0] pc;
  reg [7:0] acc;
  reg borrow;  // of the last subtraction
  reg [7:0] memory [0:3];
  reg [7:0] instruction;

  always @*
    case (pc)
      0: instruction = {LDI, 5'd1};
      1: instruction = {STA, ONE};
      2: instruction = {LDI, 5'd2};
      3: instruction = {STA, N};
      4: instruction = {LDI, 5'd2};    // the next number: the first divisor is 2
      5: instruction = {STA, D};
      6: instruction = {LDA, D};
      7: instruction = {SUB, N};
      8: instruction = {JZ, 5'd18};    // no divisor below the number: it is prime
      9: instruction = {LDA, N};
      10: instruction = {SUB, D};
      11: instruction = {JZ, 5'd20};   // divided without rest: it is not
      12: instruction = {JB, 5'd14};
      13: instruction = {JMP, 5'd10};
      14: instruction = {LDA, D};      // the next divisor
      15: instruction = {ADD, ONE};
      16: instruction = {STA, D};
      17: instruction = {JMP, 5'd6};
      18: instruction = {LDA, N};
      19: instruction = {JMP, PUT};
      20: instruction = {LDA, N};
      21: instruction = {ADD, ONE};
      22: instruction = {STA, N};
      default: instruction = {JMP, 5'd4};
    endcase

  wire [2:0] operation = instruction[7:5];
  wire [4:0] argument = instruction[4:0];
  wire [7:0] operand = memory[argument[1:0]];
  wire puts = operation == JMP && argument == PUT;

  always @(posedge clk)
    if (rst) begin
      pc <= 0;
      valid <= 0;
    end else begin
      pc <= pc + 1;
      valid <= puts;
      if (puts) out <= acc;
      case (operation)
        LDI: acc <= argument;
        LDA: acc <= operand;
        STA: memory[argument[1:0]] <= acc;
        ADD: acc <= acc + operand;
        SUB: {borrow, acc} <= {1'b0, acc} - operand;
        JB: if (borrow) pc <= argument;
        JZ: if (acc == 0) pc <= argument;
        JMP: if (!puts) pc <= argument;
      endcase
    end
endmodule
